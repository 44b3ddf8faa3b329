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

/// Returns whether the model is tested, on test rows that the user gave or on rows held out of the
/// training data. The result is true even if the number of held-out rows turns out to be 0.
inline bool has_test_rows(const TrainConfig& config, const DataSplit& data) {
  return config.holdout || data.test_given || data.test.whole_size() > 0;
}

/// Everything that a training needs: settings, data in memory, a network with its shapes, a
/// backend.
struct Experiment {
  TrainConfig config;  ///< includes the chosen model, device and precision
  DataSplit data;
  ModelInputs inputs;      ///< how inputs are computed from a table or from images
  std::string model_text;  ///< layers of the model, as TOML
  Network network;
  /// Pre-trained weights from the file that --init names; nullopt if all weights are drawn at
  /// random.
  std::optional<PublicWeights> initial = {};
  /// Released noisy statistics of the training set (principal components, or scale and shift of
  /// channels), with which inputs are converted to features. Empty if features need none, or as
  /// long as they are not released. `data` has raw inputs before their release, and features
  /// afterwards.
  std::vector<float> feature_release;
  Backend backend;
  /// Public number of training examples, if it is not the number of examples in `data`. Only set by
  /// an audit, which trains with and without certain examples (canaries). The number includes the
  /// canaries in both cases.
  std::optional<std::size_t> public_size = {};
  /// Random key that decided which rows were held out for testing and moved to data.test; nullopt
  /// if none were. Every checkpoint stores it, because with another key, rows would change between
  /// training and test set.
  std::optional<SharedKey> split_key = {};

  /// The processes (ranks) that train one model together. `data` has this process's range of the
  /// training and test set. test_labels and test_targets have the labels and targets of the whole
  /// test set on rank 0, and are empty on other ranks.
  Ranks* ranks = &alone();
  std::vector<std::uint8_t> test_labels = {};
  std::vector<float> test_targets = {};

  /// Cache of results of the privacy accountant (memo); null if there is none. ahead: waits for the
  /// thread that computes some of these results in advance.
  std::shared_ptr<privacy::AccountantMemo> memo = {};
  std::shared_future<void> ahead = {};

  /// Returns whether the model is tested. The answer is public, but the number of test rows may be
  /// private: `data.test` may be empty, and only files in private/ may reveal that.
  bool has_test() const { return has_test_rows(config, data); }
};

/// Reads the data and the model, and opens the backend. Writes nothing. Throws InputError if data
/// or model cannot be read, or if the method cannot train such a model or on such a device. ranks:
/// the processes that train together; all of them call this, with the same split_key. Arguments for
/// a run that is resumed: known_model, the model as TOML; split_key, the key that decides which
/// rows are held out; initial, the pre-trained weights, may be null. If one of them is empty, it is
/// read or drawn as the config states.
Experiment prepare(const TrainConfig& config, Reporter& reporter,
                   const std::string& known_model = "", std::optional<SharedKey> split_key = {},
                   Ranks& ranks = alone(), const PublicWeights* initial = nullptr);

/// Reads the data of a training. storage: whether rows are kept in memory or in a file. progress:
/// shows how much has been read. If `storage` allows a file and the run converted its table before
/// it was interrupted, those rows are used (KeptTableInUse). split_key: key that decides which rows
/// are held out. Throws InputError if the data cannot be read.
DataSplit read_data(const TrainConfig& config, const std::optional<SharedKey>& split_key,
                    const Ranks& ranks, const RowStorage& storage, Busy* progress);

/// Returns a new random key that decides which rows are held out for testing. It is independent of
/// the key from which the training's noise is drawn, unless the user set a seed.
RandomKey split_key_of(const TrainConfig& config);

/// Returns the settings of the transforms from inputs to features, including the ranks (processes)
/// that compute noisy statistics for them together.
FeatureSettings feature_settings(const Experiment& experiment);

/// Returns the TOML text of a model. name: a built-in model or a file. Throws InputError if there
/// is neither.
std::string read_model(const std::string& name);

/// Returns the first entries of a run's ledger, before its privacy plan is made: the charge for
/// releasing the noisy number of examples, and `split`, which states how the budget is divided
/// between that release and the training. noise: standard deviation of the noise on the number; 0
/// if the number is public and nothing is charged.
privacy::Ledger ledger_of_size(double noise, const std::optional<privacy::CountSplit>& split);

/// Returns the ledger of a run before the first step. It has the entries of `counted` (the charge
/// for the noisy number of examples, from ledger_of_size()); the budget, if a privacy filter
/// enforces it; the charges for noisy statistics that are released before training; and those for
/// values that the method releases at its start.
privacy::Ledger first_ledger(const TrainConfig& config, const TrainingSize& size,
                             const Method& method, const privacy::Ledger& counted);

/// Releases the noisy statistics from which features are computed, and converts the data to
/// features. Does nothing if features need no statistics. Requires that the ledger has the charge
/// for these statistics. gate: draws the noise.
void release_features(Experiment& experiment, const TrainingSize& size, Gate& gate);

/// Converts the data of `experiment` to features with noisy statistics that were released earlier
/// (`released`), and stores these in experiment.feature_release. Does nothing if features need no
/// statistics.
void show_features(Experiment& experiment, std::vector<float> released);

}  // namespace cudp
