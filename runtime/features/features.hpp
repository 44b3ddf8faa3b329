#pragma once
#include <string>
#include <vector>

#include "models/layer.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/gate.hpp"
#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Settings of the features that a model sees, and the folder where computed ones are cached.
struct FeatureSettings {
  /// Normalisation of each example as it is read, before any other transform.
  Normalise normalise = Normalise::none;
  Features kind = Features::none;
  int groups = 0;             ///< number of channel groups normalised within each example; 0: none
  bool standardise = false;   ///< standardise channels by a noisy release, instead of groups
  double second_order = 1.0;  ///< standard deviation of standardised channels of order 2
  std::int64_t dimensions = 0;  ///< output dimensions of Features::pca
  bool whiten = false;          ///< whiten the output of Features::pca
  std::string cache = "auto";   ///< a folder, "auto" for the user's cache folder, or "none"
  int threads = 0;
  Ranks* ranks = &alone();  ///< ranks whose parts of the training set a release sums
};

FeatureSettings feature_settings(const TrainConfig& config);

/// Normalises numbers, or converts images to scattering features. This is a function of each
/// example alone, so neighbouring data sets stay neighbours and no privacy is spent. Steps that
/// spend privacy follow (rest_on_release). Throws InputError if the data are not numbers, or not
/// images of a valid size.
void make_features(Dataset& data, const FeatureSettings& settings, const Backend& backend,
                   Reporter& reporter);

/// Returns whether features need a noisy release about the whole training set: principal components
/// (pca.hpp), or moments of the channels (standardise.hpp).
bool rest_on_release(const FeatureSettings& settings);

/// Returns the shape of an example after apply_release. Throws InputError if the training set does
/// not have a valid shape.
Shape released_shape(const Dataset& train, const FeatureSettings& settings);

/// Makes the release that features need, by the Gaussian mechanism with sensitivity 1 and noise
/// multiplier sigma; the gate charges it. size: number of training examples as the public knows it.
/// max_examples: upper bound on the real number. Returns the rows of a matrix: pca [dimensions,
/// inputs], channels [2, channels]; empty if features need no release.
std::vector<float> release_for_features(const Dataset& train, const FeatureSettings& settings,
                                        double size, double max_examples, double sigma, Gate& gate);

/// Converts examples to features with a release. This is a function of each example alone. Throws
/// InputError if `released` does not fit the examples; `name` is the name of the data.
void apply_release(Dataset& data, const FeatureSettings& settings,
                   const std::vector<float>& released, const std::string& name);

/// Adds the release to the file of a released model, as tensor "features.projection" or
/// "features.scaling".
void add_release(TensorFile& file, const FeatureSettings& settings,
                 const std::vector<float>& released);
/// Reads the release from such a file; empty if features need none. Throws InputError if the tensor
/// is missing.
std::vector<float> read_release(const TensorFile& file, const FeatureSettings& settings,
                                const std::string& source);

}  // namespace cudp
