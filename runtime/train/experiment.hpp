#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "runtime/config.hpp"
#include "runtime/dataset.hpp"
#include "runtime/engine.hpp"
#include "runtime/plan.hpp"
#include "runtime/train/backend.hpp"
#include "runtime/train/make_plan.hpp"
#include "runtime/train/reporter.hpp"

namespace cudp {

/// What a config means on this machine: data in memory, a network with shapes, a backend.
struct Experiment {
  TrainConfig config;  ///< with the model, the device and the precision that were chosen
  DataSplit data;
  std::string model_text;  ///< TOML
  Network network;
  /// Of Features::pca, [feature_dimensions, inputs]; empty until it is released. The data are as
  /// they were read until then.
  std::vector<float> projection;
  Backend backend;
};

/// Reads the data and the model, or takes the model of a run that is resumed. Throws InputError;
/// writes nothing.
Experiment prepare(const TrainConfig& config, Reporter& reporter,
                   const std::string& known_model = "");

/// The same for a method of linear models with one score; all but dp-agd run on the CPU. Throws
/// InputError for another model or device.
Experiment prepare_linear(TrainConfig config, Reporter& reporter,
                          const std::string& known_model = "");

/// The model's TOML: a built-in one by name, or a file. Throws InputError.
std::string read_model(const std::string& name);

/// parse_model and build_network. Throws InputError.
Network make_network(const std::string& model_text, const std::string& source,
                     const std::string& activation, const Shape& input, int classes);

/// Draws the projection of Features::pca: a release, which must have been paid for.
std::vector<float> released_projection(const Experiment& experiment, const PrivacyPlan& plan,
                                       const RandomKey& key);

/// Shows the model what `projection` leaves of the data (features/pca.hpp).
void show_projected(Experiment& experiment, std::vector<float> projection);

/// An engine with the training set on it.
std::unique_ptr<Engine> make_engine(const Experiment& experiment, const PrivacyPlan& plan,
                                    const TrainingSize& size, const RandomKey& key);

}  // namespace cudp
