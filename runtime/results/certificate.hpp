#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "privacy/count_split.hpp"
#include "runtime/config/config.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/methods/promise.hpp"
#include "runtime/methods/training_size.hpp"
#include "runtime/results/holdout_figures.hpp"

namespace cudp {

/// The statement of a run about its privacy: the promise, and all that is needed to check it. It
/// holds nothing about the training data but what was paid for. It is release/privacy.json.
struct Certificate {
  enum class Status {
    finished,
    not_finished,  ///< the plan of a run in progress or cut short
    refused        ///< the noisy number of examples allowed no plan
  };
  Status status = Status::finished;
  std::vector<std::string> not_for_release;  ///< why, in words; empty: it may be released
  Promise promise;                           ///< of the training
  std::optional<Groups> groups;
  std::vector<Listed> noisy_values;  ///< released by the host, besides the steps' sums

  /// The unit of privacy, where it is not the row.
  struct Unit {
    std::string column;          ///< of the table: all rows with one text in it are a unit
    std::uint64_t max_rows = 1;  ///< of a unit that are used
  };
  std::optional<Unit> unit;

  HoldoutPlan holdout;  ///< of share 0 where no rows are held out

  // Data.
  std::string dataset;
  Normalise normalise = Normalise::none;
  Features features = Features::none;
  /// The release that features rest on.
  struct FeatureRelease {
    Features kind;
    double sigma;             ///< noise multiplier
    std::int64_t dimensions;  ///< of principal components
  };
  std::optional<FeatureRelease> feature_release;
  std::vector<double> class_weights;  ///< as they were given; empty: none
  TrainingSize size;
  /// How the promise is divided between the noisy number of examples and the training, if it is.
  std::optional<privacy::CountSplit> split;
  enum class TestSet { none, public_rows, private_rows };
  TestSet test_set = TestSet::none;

  // How it ran.
  Precision precision = Precision::fp32;  ///< of matrix products
  Generator rng = Generator::chacha20;
  bool seeded = false;
  std::vector<std::string> unsafe_flags;
  bool allow_weak_privacy = false;
  bool fresh_noise_allowed = false;
  std::uint64_t releases_repeated = 0;   ///< charged again because a key was lost
  std::uint64_t keys_lost = 0;           ///< once above 0, epsilon is that of the budget
  std::vector<std::string> assumptions;  ///< that the promise rests on, about the data's files
  std::vector<std::string> warnings;     ///< what the promise is too weak for
  std::string backend;

  bool for_release() const { return not_for_release.empty(); }

  /// The promise for all that is released. A unit is trained on or held out, never both: the larger
  /// of the two promises holds for it (privacy/README.md).
  double epsilon() const { return std::fmax(promise.epsilon, holdout.epsilon); }
  double delta() const { return std::fmax(promise.delta, holdout.delta); }
};

/// The certificate as it is published, with the build of this program.
nlohmann::ordered_json to_json(const Certificate& certificate);
/// The text of release/privacy.json.
std::string to_text(const Certificate& certificate);

}  // namespace cudp
