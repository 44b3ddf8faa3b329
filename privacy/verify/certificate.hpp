#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/count_split.hpp"
#include "privacy/ledger.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::verify {

/// The statements of release/privacy.json, as far as a checker holds it against a run. Numbers that
/// are not there are 0.
struct Certificate {
  /// A row of "noisy_values".
  struct Listed {
    std::string what;
    std::uint64_t times = 0;
    std::uint64_t numbers = 0;
    double sensitivity = 0.0, noise_std = 0.0, grid = 0.0;
  };
  struct Quantile {
    double target = 0.0, min_clip = 0.0, max_clip = 0.0;
    double gradient_noise = 0.0;  ///< z_g, as a multiple of C and its rounding
    double count_sensitivity = 0.0, count_noise = 0.0;
  };

  std::string status;  ///< finished, not finished, refused
  std::string method, sampling, accountant, generator, test_set;
  int format = 2;        ///< 1 or 2
  double epsilon = 0.0;  ///< for all that was released; NaN where none is claimed
  double delta = 0.0;
  double training_epsilon = 0.0;  ///< for what was trained on: the same but where rows are held out
  double training_delta = 0.0;
  double failure = 0.0;        ///< part of training_delta
  std::string unit;            ///< column of the unit of privacy; empty: each row is one
  std::uint64_t max_rows = 1;  ///< of a unit

  /// Units that were held out, and what is said of their rows; empty where none were.
  struct Holdout {
    double share = 0.0;
    double epsilon = 0.0, delta = 0.0, sigma = 0.0;  ///< 0 where nothing is said
    std::uint64_t releases = 0;                      ///< of noise sigma
  };
  std::optional<Holdout> holdout;
  bool bounds_groups = false;  ///< has a table of epsilon for several units
  double q = 0.0, sigma = 0.0, clip = 0.0, sensitivity = 0.0, noise_std = 0.0, grid = 0.0;
  std::uint64_t threshold = 0;
  double expected_batch = 0.0;
  std::uint64_t steps = 0, steps_planned = 0;
  std::uint64_t repeated = 0;  ///< releases charged again because a key was lost
  /// How often a key was lost; empty where it is not said, as in all of format 1.
  std::optional<std::uint64_t> keys_lost;
  double order = 0.0;
  bool order_fixed = false;
  std::optional<std::uint64_t> examples;  ///< where that is public
  double size = 0.0;                      ///< that, or the noisy one
  double size_noise = 0.0;
  double feature_noise = 0.0;
  double norm_total_noise = 0.0;
  double loss_sensitivity = 0.0;
  std::optional<Quantile> quantile;
  std::vector<privacy::Release> releases;
  std::vector<Listed> noisy_values;
  /// The parts of training_epsilon and training_delta, where a noisy number of examples has one of
  /// its own.
  std::optional<privacy::CountSplit> split;

  /// The budget of what was planned, by looking at such a number if there is one, and its releases.
  double plan_epsilon() const { return split ? split->training_epsilon : training_epsilon; }
  double plan_delta() const { return split ? split->training_delta : training_delta; }
  std::vector<privacy::Release> plan_releases() const;
  bool is_finished() const { return status == "finished"; }
  /// Whether it says that a key was lost. Then how many steps there are may have been chosen by
  /// what they showed, and nothing is known of the run but its budget.
  bool lost_a_key() const { return repeated > 0 || keys_lost.value_or(0) > 0; }
};

/// Throws std::invalid_argument where it cannot be read.
Certificate read_certificate(std::string_view text);

/// One line of a ledger, and where it stands.
struct Charge {
  bool numbered = false;
  std::uint64_t first = 0;  ///< number of the first release, where they have numbers
  privacy::Release release;
  std::uint64_t position = 0;  ///< releases in the file before it
  std::uint64_t key = 0;       ///< how many keys were lost before it
};

struct Charges {
  std::vector<Charge> lines;
  /// For each loss of a key: the number of releases in the file before it.
  std::vector<std::uint64_t> lost;
  std::uint64_t total = 0;
  privacy::Ledger ledger;

  /// Keys that were lost before the last of the first `charged` releases.
  std::uint64_t keys_until(std::uint64_t charged) const;
  /// The mechanism that release `number` was charged as under a key, within the first `charged`
  /// releases of the file; null where it was not.
  const privacy::Mechanism* find(std::uint64_t number, std::uint64_t key,
                                 std::uint64_t charged) const;
};

/// A ledger's text, whatever stands below its last line. Throws std::invalid_argument where it is
/// damaged.
Charges read_charges(std::string_view text);

}  // namespace cudp::verify
