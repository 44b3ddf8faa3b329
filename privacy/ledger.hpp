#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/count_split.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

/// A guarantee stated before the first release, for a filter (filter.hpp) to keep: (epsilon,
/// delta)-DP of everything, counted at one Renyi order, or in zCDP.
struct Budget {
  double order = 0.0;    ///< Renyi order > 1, fixed ahead; 0: zCDP
  double epsilon = 0.0;  ///< finite, > 0
  double delta = 0.0;    ///< in (0, 1)
  double failure = 0.0;  ///< the part of delta set aside for what ApproximateDp mechanisms bring
  /// How many examples neighbours differ by, all of one unit of privacy; 1 to kMaxGroup.
  std::uint64_t group = 1;
  bool operator==(const Budget&) const = default;
};

/// Throws std::invalid_argument, with the value, unless the fields are in their ranges.
void check(const Budget& budget);

/// The releases that were made, or may have been: the source of a run's certificate. Nothing that
/// was charged is ever taken back.
///
/// It is written ahead of what it records. A trainer authorises the steps up to its next
/// checkpoint, makes the ledger durable, and only then runs them; after a crash at any moment the
/// ledger on disk covers every step whose noise was ever drawn.
///
/// A step's noise is a function of the random key and the step's number. Replaying a step with the
/// key it ran with gives the same output, releases nothing new and is not charged again. Replaying
/// it with another key is a second release of the same step, and is: see fresh_key.
class Ledger {
 public:
  /// Charges a noisy number of examples ahead of everything else, and writes down the two parts of
  /// the budget: what is charged later belongs to the second one. Throws std::invalid_argument
  /// where the split is out of range, or not the first entry.
  void count_first(const CountSplit& split);
  const std::optional<CountSplit>& split() const { return split_; }

  /// Writes down the budget that the releases to come are to stay within. It is the filter that
  /// keeps it. Throws std::invalid_argument where it is out of range, or not the first entry (a
  /// budget stated later guarantees nothing). After a split it is a budget of the second part,
  /// which may be chosen by looking at the count.
  void limit(const Budget& budget);
  const std::optional<Budget>& budget() const { return budget_; }

  /// Charges a release that is not one of the numbered steps (a noisy count, say).
  /// Throws std::invalid_argument if the mechanism is out of range.
  void charge(const Release& release);

  /// Allows steps [begin, end) to run, each of them this mechanism, and charges those of them that
  /// the present key was not yet allowed. Returns how many that were.
  /// Throws std::invalid_argument, and changes nothing, where begin > end; where begin is outside
  /// the steps the present key may replay or continue with; and where a replayed step had other
  /// settings: the same noise at two scales can be subtracted away.
  std::uint64_t authorise(std::uint64_t begin, std::uint64_t end, const Mechanism& mechanism);

  /// How many steps authorise would charge. Throws what it throws.
  std::uint64_t unpaid(std::uint64_t begin, std::uint64_t end, const Mechanism& mechanism) const;

  /// Whether this many of the mechanism are charged among the releases that are not numbered steps.
  bool holds(const Release& release) const;

  /// The generator's key was lost: training goes on from `step` with a new one. What was authorised
  /// stays charged, and steps from `step` on will be charged when they are authorised again.
  /// Throws std::invalid_argument where step > authorised_until().
  void fresh_key(std::uint64_t step);

  /// Number of times that the key was lost. Once it was, how many steps there are may depend on
  /// what earlier ones showed.
  std::uint64_t keys_lost() const;
  bool has_fresh_key() const { return keys_lost() > 0; }

  /// How many numbered steps were charged again because a key was lost: all charged ones less those
  /// up to authorised_until().
  std::uint64_t repeated() const;

  /// One past the last step that the present key may run.
  std::uint64_t authorised_until() const { return until_; }

  /// Everything charged, in order, equal neighbours merged.
  ///
  /// Their epsilon is the guarantee of releases that were fixed ahead. Where later releases were
  /// chosen by looking at earlier ones, the best Renyi order is such a choice too: give the
  /// accountant the one order that was fixed ahead, or believe the filter.
  std::vector<Release> releases() const;

  /// All of these but the count of a split: what its second part pays for.
  std::vector<Release> releases_after_count() const;

  /// Whether this is `earlier` or what it grew into: a resumed run must not go on from a ledger
  /// that forgot what the checkpoint's ledger knew.
  bool continues(const Ledger& earlier) const;

  /// The ledger as text: one record a line, numbers in hexadecimal so that they are exact, each
  /// line with a checksum of everything up to it, and a last line that says that it is the last.
  std::string to_text() const;
  /// Reads to_text's form. Damage of any single byte, truncation and anything appended throw
  /// std::invalid_argument: "NAME, line L: expected ..., found ...".
  static Ledger from_text(std::string_view text, std::string_view name);

  bool operator==(const Ledger&) const = default;

 private:
  enum class Kind : std::uint8_t { release, steps, key };
  struct Record {
    Kind kind = Kind::release;
    std::uint64_t first = 0;  ///< steps: the first one; key: where the new key begins
    Release release;          ///< release, steps
    bool operator==(const Record&) const = default;
  };

  void append(const Record& record);
  static std::string line_of(const Record& record);
  static Record record_of(std::string_view line, int version);

  std::optional<CountSplit> split_;
  std::optional<Budget> budget_;
  std::vector<Record> records_;
  std::uint64_t key_begin_ = 0;  ///< the first step of the present key
  std::uint64_t until_ = 0;
};

}  // namespace cudp::privacy
