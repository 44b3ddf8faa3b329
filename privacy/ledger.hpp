#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/count_split.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

/// Guarantee stated before the first release, which a filter (filter.hpp) enforces: all releases
/// together are (epsilon, delta)-DP, by Renyi divergences of one order, or by zCDP.
struct Budget {
  double order = 0.0;    ///< Renyi order > 1, fixed in advance; 0: the budget is in rho (zCDP)
  double epsilon = 0.0;  ///< finite, > 0
  double delta = 0.0;    ///< in (0, 1)
  double failure = 0.0;  ///< part of delta reserved for ApproximateDp mechanisms
  /// Number of examples by which neighbouring data sets differ: the maximum number of examples of
  /// one unit of privacy; 1 to kMaxGroup.
  std::uint64_t group = 1;
  bool operator==(const Budget&) const = default;
};

/// Throws std::invalid_argument, with the wrong value, unless the budget's fields are in their
/// ranges.
void check(const Budget& budget);

/// List of the releases that a run has made, or may have made: the source of its certificate. A
/// charge is never undone.
///
/// It is a write-ahead log. A trainer authorises the steps up to its next checkpoint, makes the
/// ledger durable, and only then runs them. After a crash at any moment the ledger on disk covers
/// every step whose noise was ever drawn.
///
/// A step's noise is a function of the random key and the step's number. Replaying a step with the
/// key it ran with gives the same output, releases nothing new and is not charged again. Replaying
/// it with another key is a second release of the same step and is charged: see fresh_key.
class Ledger {
 public:
  /// Charges the noisy number of examples, and records how the budget is divided between that
  /// release and everything later. Throws std::invalid_argument if the split is out of range, or if
  /// the ledger has an entry already.
  void count_first(const CountSplit& split);
  const std::optional<CountSplit>& split() const { return split_; }

  /// Records the budget for all later releases, which a filter enforces. If the budget is divided
  /// (count_first), this is the part for everything after the noisy number of examples; it may be
  /// chosen after looking at that number. Throws std::invalid_argument if the budget is out of
  /// range, or if the ledger has a budget or any release already: a budget stated later guarantees
  /// nothing.
  void limit(const Budget& budget);
  const std::optional<Budget>& budget() const { return budget_; }

  /// Charges a release that is not a numbered step, such as the noisy number of examples. Throws
  /// std::invalid_argument if the mechanism is out of range.
  void charge(const Release& release);

  /// Authorises steps [begin, end), each of this mechanism, and charges those that the current key
  /// was not authorised for yet. Returns the number of charged steps. Throws std::invalid_argument,
  /// and changes nothing, if begin > end; if begin is outside the steps that the current key may
  /// replay or continue with; or if a replayed step had other settings, because the same noise at
  /// two scales can be cancelled.
  std::uint64_t authorise(std::uint64_t begin, std::uint64_t end, const Mechanism& mechanism);

  /// Returns the number of steps that authorise() with these arguments would charge, without
  /// charging them. Throws std::invalid_argument in the same cases as authorise().
  std::uint64_t uncharged_steps(std::uint64_t begin, std::uint64_t end,
                                const Mechanism& mechanism) const;

  /// Returns whether at least release.count releases of this mechanism are charged, apart from
  /// numbered steps.
  bool holds(const Release& release) const;

  /// Records that the random key, which draws the noise, is lost and training continues from `step`
  /// with a new one. Charged steps stay charged. Steps from `step` on then have new noise, and are
  /// charged again when they are authorised. Throws std::invalid_argument if step >
  /// authorised_until().
  void fresh_key(std::uint64_t step);

  /// Returns how often the random key was lost and replaced (fresh_key()). After the first loss,
  /// the number of steps may have been chosen by looking at released values.
  std::uint64_t keys_lost() const;
  /// Returns whether the key was ever lost and replaced by a new one.
  bool has_fresh_key() const { return keys_lost() > 0; }

  /// Returns the number of steps that were charged again, because they were repeated with a new
  /// key: all charged steps minus those up to authorised_until().
  std::uint64_t repeated() const;

  /// Returns the number of the step after the last one that is authorised, and charged, for the
  /// current key.
  std::uint64_t authorised_until() const { return until_; }

  /// Returns everything that was charged, in order. Consecutive equal releases are merged into one
  /// entry with a count.
  ///
  /// Their epsilon is a guarantee only for releases that were fixed in advance. If later releases
  /// were chosen after looking at earlier ones, the best Renyi order is such a choice too: give the
  /// accountant the one order that was fixed in advance, or use the filter's guarantee.
  std::vector<Release> releases() const;

  /// Returns everything that was charged, except a noisy number of examples that has its own part
  /// of the budget.
  std::vector<Release> releases_after_count() const;

  /// Returns whether this ledger is `earlier` or a continuation of it. A resumed run must not
  /// continue from a ledger that lacks entries of the checkpoint's ledger.
  bool continues(const Ledger& earlier) const;

  /// Returns the ledger as text: one record per line, numbers in hexadecimal so that they are
  /// exact, each line with a checksum of everything up to it, and a last line that marks the end.
  std::string to_text() const;
  /// Reads the text that to_text() writes. name: name of the text in messages. Throws
  /// std::invalid_argument, "NAME, line L: expected ..., found ...", if any single byte is damaged,
  /// the end is missing, or text was appended.
  static Ledger from_text(std::string_view text, std::string_view name);

  bool operator==(const Ledger&) const = default;

 private:
  enum class Kind : std::uint8_t { release, steps, key };
  /// One line of the ledger: a release, a range of steps, or the loss of the random key.
  struct Record {
    Kind kind = Kind::release;
    /// Number of the first step to which the record applies: of the charged steps, or of the steps
    /// that run under a new random key.
    std::uint64_t first = 0;
    /// release that was charged; for a record of steps: their mechanism and their number
    Release release;
    bool operator==(const Record&) const = default;
  };

  void append(const Record& record);
  static std::string line_of(const Record& record);
  static Record record_of(std::string_view line, int version);

  std::optional<CountSplit> split_;
  std::optional<Budget> budget_;
  std::vector<Record> records_;
  std::uint64_t key_begin_ = 0;  ///< first step of the current key
  std::uint64_t until_ = 0;
};

}  // namespace cudp::privacy
