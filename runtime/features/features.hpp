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

/// How features are computed from examples before the model sees them, and where they are cached.
struct FeatureSettings {
  /// Normalisation of each example as it is read, before any other transform.
  Normalise normalise = Normalise::none;
  Features kind = Features::none;
  int groups = 0;  ///< normalise this number of groups of channels within each example; 0: none
  /// Whether channels are standardised with noisy means and variances of the training set, instead
  /// of in `groups`.
  bool standardise = false;
  /// Standard deviation that scattering channels of order 2 are scaled to, if `standardise`.
  double second_order = 1.0;
  std::int64_t dimensions = 0;  ///< number of principal components (Features::pca)
  bool whiten = false;          ///< scale principal components to equal variance (Features::pca)
  std::string cache = "auto";   ///< a folder, "auto" for the user's cache folder, or "none"
  int threads = 0;
  /// Processes that train together, each with a range of the training set.
  Ranks* ranks = &alone();
};

FeatureSettings feature_settings(const TrainConfig& config);

/// Normalises the features, or converts images to scattering features, in place. The result depends
/// on each example alone, so this costs no privacy. Transforms that cost privacy follow
/// (rest_on_release). Throws InputError if the data are not numbers, or not images of a valid size.
void make_features(Dataset& data, const FeatureSettings& settings, const Backend& backend,
                   Reporter& reporter);

/// Returns whether features are computed with noisy statistics of the whole training set: principal
/// components (pca.hpp), or means and variances of channels (standardise.hpp).
bool rest_on_release(const FeatureSettings& settings);

/// Returns the shape of an example after apply_release. Throws InputError if the training set's
/// shape is not valid for these settings.
Shape released_shape(const Dataset& train, const FeatureSettings& settings);

/// Computes the statistics of the training set that features are computed with, and releases them
/// with noise, which `gate` adds: Gaussian mechanism with sensitivity 1 and noise multiplier sigma.
/// size: number of training examples; the noisy one if it is private. max_examples: upper bound on
/// the true number. Returns a matrix: principal components [dimensions, inputs], or scale and shift
/// of channels [2, channels]; empty if features need no statistics.
std::vector<float> release_for_features(const Dataset& train, const FeatureSettings& settings,
                                        double size, double max_examples, double sigma, Gate& gate);

/// Converts examples to features in place, with released statistics. The result depends on each
/// example alone. Throws InputError if `released` does not fit the examples; `name` is the name of
/// the data.
void apply_release(Dataset& data, const FeatureSettings& settings,
                   const std::vector<float>& released, const std::string& name);

/// Adds the released statistics to the file of a released model, as tensor "features.projection" or
/// "features.scaling".
void add_release(TensorFile& file, const FeatureSettings& settings,
                 const std::vector<float>& released);
/// Reads the released statistics from a model's file; empty if features need none. source: name of
/// the file. Throws InputError if the tensor is missing.
std::vector<float> read_release(const TensorFile& file, const FeatureSettings& settings,
                                const std::string& source);

}  // namespace cudp
