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

/// Settings of the transforms that convert examples to features before they enter the network
/// (normalisation, scattering, principal components), and of the cache for features.
struct FeatureSettings {
  /// Normalisation of each example by itself (e.g. by its norm), before any other transform.
  Normalise normalise = Normalise::none;
  Features kind = Features::none;  ///< the transform after the normalisation
  int groups = 0;  ///< number of groups of channels to normalise within each example; 0: none
  /// Whether channels are standardised with noisy means and variances of the whole training set,
  /// which costs privacy, instead of being normalised within each example (`groups`).
  bool standardise = false;
  /// Standard deviation to which channels with second-order scattering coefficients are scaled if
  /// `standardise` is set; all other channels are scaled to 1.
  double second_order = 1.0;
  std::int64_t dimensions = 0;  ///< number of principal components (Features::pca)
  bool whiten = false;          ///< scale principal components to equal variance (Features::pca)
  std::string cache = "auto";   ///< a folder, "auto" for the user's cache folder, or "none"
  int threads = 0;
  /// The ranks: processes that train one model together, each with a range of the training set.
  Ranks* ranks = &alone();
};

FeatureSettings feature_settings(const TrainConfig& config);

/// Normalises the features, or converts images to scattering features, in place. The features of an
/// example depend on this example alone, so this costs no privacy. Transforms that use noisy
/// statistics of the training set are applied later, by apply_release(). Throws InputError if the
/// data are not numbers, or not images of a valid size.
void make_features(Dataset& data, const FeatureSettings& settings, const Backend& backend,
                   Reporter& reporter);

/// Returns whether features are computed with noisy statistics of the whole training set, which
/// cost privacy: principal components, or means and variances of channels.
bool rest_on_release(const FeatureSettings& settings);

/// Returns the shape that an example has after the transform with noisy statistics of the training
/// set (apply_release()). Throws InputError if the training set's shape is not valid for these
/// settings.
Shape released_shape(const Dataset& train, const FeatureSettings& settings);

/// Computes the statistics of the training set that the feature transform uses, and releases them
/// with noise, which `gate` adds: Gaussian mechanism with sensitivity 1 and noise multiplier sigma.
/// size: number of training examples, or its noisy estimate if it is private. max_examples: public
/// upper bound on the true number. Returns the noisy statistics as a matrix: principal components
/// [dimensions, inputs], or scale and shift of channels [2, channels]; empty if features need no
/// statistics.
std::vector<float> release_for_features(const Dataset& train, const FeatureSettings& settings,
                                        double size, double max_examples, double sigma, Gate& gate);

/// Converts examples to features in place, with noisy statistics that were released before:
/// projects them on principal components, or scales their channels. Given the statistics, the
/// features of an example depend on this example alone. released: result of release_for_features().
/// name: name of the data, for messages. Throws InputError if `released` does not fit the examples.
void apply_release(Dataset& data, const FeatureSettings& settings,
                   const std::vector<float>& released, const std::string& name);

/// Adds the noisy statistics that the feature transform uses to a model's file, as tensor
/// "features.projection" or "features.scaling". released: result of release_for_features().
void add_release(TensorFile& file, const FeatureSettings& settings,
                 const std::vector<float>& released);
/// Reads the noisy statistics that the feature transform uses from a model's file; empty if
/// features need none. source: name of the file. Throws InputError if the tensor is missing.
std::vector<float> read_release(const TensorFile& file, const FeatureSettings& settings,
                                const std::string& source);

}  // namespace cudp
