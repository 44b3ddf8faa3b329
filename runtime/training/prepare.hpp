#pragma once
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "privacy/memo.hpp"
#include "runtime/base/busy.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/features/features.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/results/model_inputs.hpp"
#include "runtime/training/public_weights.hpp"

namespace cudp {

/// Returns whether there are test rows, given or held out; their number may be 0.
inline bool has_test_rows(const TrainConfig& config, const DataSplit& data) {
  return config.holdout || data.test_given || data.test.whole_size() > 0;
}

/// An experiment, prepared on this machine: data in memory, a network with shapes, a backend.
struct Experiment {
  TrainConfig config;  ///< includes the chosen model, device and precision
  DataSplit data;
  ModelInputs inputs;      ///< meaning of the data's numbers
  std::string model_text;  ///< the model's layers, as TOML
  Network network;
  std::optional<PublicWeights> initial = {};  ///< weights of --init; nullopt: all are drawn
  /// Release that the features need (release_for_features). Empty before it is made, or if they
  /// need none. Until it is made, `data` has the inputs of the features; afterwards, the features.
  std::vector<float> feature_release;
  Backend backend;
  /// Public number of training examples, if it differs from the number in `data`. An audit sets it:
  /// its canaries count whether they are present or not.
  std::optional<std::size_t> public_size = {};
  /// Key of the coins by which rows were held out into data.test; nullopt if none were. Every
  /// checkpoint has it, because a new key would move rows from one part to the other.
  std::optional<SharedKey> coins = {};

  /// Ranks that this process trains with. `data` then has this rank's range of each part.
  /// test_labels and test_targets, on rank 0, are those of the whole test set.
  Ranks* ranks = &alone();
  std::vector<std::uint8_t> test_labels = {};
  std::vector<float> test_targets = {};

  /// Results of the accountant, and the thread that computes some of them ahead (plan_ahead).
  std::shared_ptr<privacy::AccountantMemo> memo = {};
  std::shared_future<void> ahead = {};

  /// Returns whether the model is tested. This is public, but the number of test rows may not be:
  /// data.test may be empty, and only numbers in private/ may reveal that.
  bool has_test() const { return has_test_rows(config, data); }
};

/// Reads the data and the model, or takes the model of a run that is resumed. Writes nothing.
/// coins: key of a run that is resumed; a new run makes its own. ranks: all of them prepare the
/// same, with the same coins. initial: weights of a run that is resumed, or null; a new run reads
/// its own. Throws InputError, also if the method cannot train such a model or on
/// such a device.
Experiment prepare(const TrainConfig& config, Reporter& reporter,
                   const std::string& known_model = "", std::optional<SharedKey> coins = {},
                   Ranks& ranks = alone(), const PublicWeights* initial = nullptr);

/// Reads the data of a training. storage: where its rows are kept. `progress` may show how far it
/// is. Throws InputError.
DataSplit read_data(const TrainConfig& config, const std::optional<SharedKey>& coins,
                    const Ranks& ranks, const RowStorage& storage, Busy* progress);

/// Returns the key of a new run's coins, independent of the training's key unless the run is
/// seeded.
RandomKey coins_of(const TrainConfig& config);

/// Returns the features' settings, with the ranks that make the release they need.
FeatureSettings feature_settings(const Experiment& experiment);

/// Returns the model's TOML: a built-in model by name, or a file. Throws InputError.
std::string read_model(const std::string& name);

/// Returns the ledger before there is a plan: the number of examples, if its noise is not 0, and
/// the division of the budget, if it is divided.
privacy::Ledger ledger_of_size(double noise, const std::optional<privacy::CountSplit>& split);

/// Returns the ledger before the first step: the division of the budget in `counted`, the budget if
/// a filter keeps it, the releases before the method's own, and the releases that the method pays
/// for at once. counted: ledger_of_size.
privacy::Ledger first_ledger(const TrainConfig& config, const TrainingSize& size,
                             const Method& method, const privacy::Ledger& counted);

/// Makes the release that features need, which must have been charged, and converts the data to
/// features. Does nothing if features need no release.
void release_features(Experiment& experiment, const TrainingSize& size, Gate& gate);

/// Stores `released` and converts the data to features with it. Does nothing if features need no
/// release.
void show_features(Experiment& experiment, std::vector<float> released);

}  // namespace cudp
