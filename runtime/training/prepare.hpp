#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/features/features.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/results/model_inputs.hpp"

namespace cudp {

/// Whether there are test rows, given or held out, of which there may be none.
inline bool has_test_rows(const TrainConfig& config, const DataSplit& data) {
  return config.holdout || data.test_given || data.test.whole_size() > 0;
}

/// A config made ready on this machine: data in memory, a network with shapes, a backend.
struct Experiment {
  TrainConfig config;  ///< with the model, the device and the precision that were chosen
  DataSplit data;
  ModelInputs inputs;      ///< what the data's numbers mean
  std::string model_text;  ///< TOML
  Network network;
  /// The release that features rest on (release_for_features); empty until it is released, and
  /// where they rest on nothing. The data are without it until then.
  std::vector<float> feature_release;
  Backend backend;
  /// The public number of training examples, where it is not that of the data here: an audit's,
  /// whose canaries count whether they are there or not.
  std::optional<std::size_t> public_size = {};
  /// The key of the coins by which rows were held out, for data.test; empty where none were. Every
  /// checkpoint has it: a new key would move rows from one part to the other.
  std::optional<SharedKey> coins = {};

  /// With whom this process trains. data has its range of each part then; of the test set, labels
  /// and targets of the whole are here.
  Ranks* ranks = &alone();
  std::vector<std::uint8_t> test_labels = {};
  std::vector<float> test_targets = {};

  /// Whether the model is tested. That there are test rows is public, how many may not be:
  /// data.test may be empty, and nothing but numbers in private/ may tell.
  bool has_test() const { return has_test_rows(config, data); }
};

/// Reads the data and the model, or takes the model of a run that is resumed. Throws InputError,
/// also where the method cannot train such a model or on such a device; writes nothing. coins:
/// those of a run that is resumed; a run that begins tosses its own. ranks: all of them prepare the
/// same, and have the same coins.
Experiment prepare(const TrainConfig& config, Reporter& reporter,
                   const std::string& known_model = "", std::optional<SharedKey> coins = {},
                   Ranks& ranks = alone());

/// The key of a new run's coins: one of its own, which the training's does not tell.
RandomKey coins_of(const TrainConfig& config);

/// The features' settings, with the ranks that release what they rest on.
FeatureSettings feature_settings(const Experiment& experiment);

/// The model's TOML: a built-in one by name, or a file. Throws InputError.
std::string read_model(const std::string& name);

/// The charges before there is a plan: the number of examples, where its noise is not 0, and how
/// the budget is divided, where it is.
privacy::Ledger ledger_of_size(double noise, const std::optional<privacy::CountSplit>& split);

/// All that is charged before the first step: how the budget is divided, as `counted` says, the
/// budget where a filter keeps it, what is released before the method's own, and what the method
/// pays for at once. counted: ledger_of_size.
privacy::Ledger first_ledger(const TrainConfig& config, const TrainingSize& size,
                             const Method& method, const privacy::Ledger& counted);

/// Releases what the features rest on, which has been charged, and shows the model features that
/// rest on it; does nothing where they rest on nothing.
void release_features(Experiment& experiment, const TrainingSize& size, Gate& gate);

/// Shows the model features that rest on `released`, which is kept; does nothing where they rest on
/// nothing.
void show_features(Experiment& experiment, std::vector<float> released);

}  // namespace cudp
