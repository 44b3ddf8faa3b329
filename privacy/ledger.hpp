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
  double order = 0.0;    ///< Renyi order > 1, fixed in advance; 0: zCDP
  double epsilon = 0.0;  ///< finite, > 0
  double delta = 0.0;    ///< in (0, 1)
  double failure = 0.0;  ///< part of delta reserved for ApproximateDp mechanisms
  /// Maximum number of examples of one unit of privacy, by which neighbouring data sets differ; 1
  /// to kMaxGroup.
  std::uint64_t group = 1;
  bool operator==(const Budget&) const = default;
};

/// Throws std::invalid_argument, with the value, unless the fields are in their ranges.
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
  /// Charges the noisy number of examples, and records how the budget is divided between it and
  /// everything later. Throws std::invalid_argument if the split is out of range, or not the first
  /// entry.
  void count_first(const CountSplit& split);
  const std::optional<CountSplit>& split() const { return split_; }

  /// Records the budget for all later releases, which a filter enforces. Throws
  /// std::invalid_argument if it is out of range, or not the first entry (a budget stated later
  /// guarantees nothing). If the budget is divided (count_first), this is the part for everything
  /// later, which may be chosen after looking at the noisy number of examples.
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
  /// charging them. Throws as authorise() does.
  std::uint64_t uncharged_steps(std::uint64_t begin, std::uint64_t end,
                                const Mechanism& mechanism) const;

  /// Returns whether at least release.count releases of this mechanism are charged, apart from
  /// numbered steps.
  bool holds(const Release& release) const;

  /// Records that the random key was lost and training continues from `step` with a new one.
  /// Charged steps stay charged, and steps from `step` on are charged again when they are
  /// authorised. Throws std::invalid_argument if step > authorised_until().
  void fresh_key(std::uint64_t step);

  /// Number of times that the key was lost. After that, the number of steps may have been chosen by
  /// looking at released values.
  std::uint64_t keys_lost() const;
  /// Returns whether the key was ever lost.
  bool has_fresh_key() const { return keys_lost() > 0; }

  /// Number of steps that were charged again because a key was lost: all charged steps minus those
  /// up to authorised_until().
  std::uint64_t repeated() const;

  /// One past the last step that the current key may run.
  std::uint64_t authorised_until() const { return until_; }

  /// Everything charged, in order, with equal neighbours merged.
  ///
  /// Their epsilon is a guarantee only for releases that were fixed in advance. If later releases
  /// were chosen after looking at earlier ones, the best Renyi order is such a choice too: give the
  /// accountant the one order that was fixed in advance, or use the filter's guarantee.
  std::vector<Release> releases() const;

  /// All releases except a noisy number of examples that has its own part of the budget.
  std::vector<Release> releases_after_count() const;

  /// Returns whether this ledger is `earlier` or a continuation of it. A resumed run must not
  /// continue from a ledger that lacks entries of the checkpoint's ledger.
  bool continues(const Ledger& earlier) const;

  /// Returns the ledger as text: one record per line, numbers in hexadecimal so that they are
  /// exact, each line with a checksum of everything up to it, and a last line that marks the end.
  std::string to_text() const;
  /// Reads the form of to_text. Damage of any single byte, truncation and appended text throw
  /// std::invalid_argument: "NAME, line L: expected ..., found ...".
  static Ledger from_text(std::string_view text, std::string_view name);

  bool operator==(const Ledger&) const = default;

 private:
  enum class Kind : std::uint8_t { release, steps, key };
  struct Record {
    Kind kind = Kind::release;
    std::uint64_t first = 0;  ///< steps: the first one; key: the first step of the new key
    Release release;          ///< release, steps
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
