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

/// The features that a model sees of an example, and the place where computed ones are kept.
struct FeatureSettings {
  Normalise normalise = Normalise::none;  ///< of the examples as they are read, before all else
  Features kind = Features::none;
  int groups = 0;               ///< of channels, normalised within each example; 0: not at all
  bool standardise = false;     ///< channels, by a release, in place of groups
  double second_order = 1.0;    ///< standard deviation of standardised channels of order 2
  std::int64_t dimensions = 0;  ///< of Features::pca
  bool whiten = false;          ///< of Features::pca
  std::string cache = "auto";   ///< a folder, "auto" for the user's cache folder, or "none"
  int threads = 0;
  Ranks* ranks = &alone();  ///< whose ranges of the training set a release adds up
};

FeatureSettings feature_settings(const TrainConfig& config);

/// Normalises numbers, or turns images into scattering features: a function of each example alone,
/// so neighbouring data sets stay neighbours and nothing is to be paid. What is paid for follows
/// (rest_on_release). Throws InputError where the data are not numbers, or not images that fit.
void make_features(Dataset& data, const FeatureSettings& settings, const Backend& backend,
                   Reporter& reporter);

/// Whether features rest on something released about the training set as a whole: principal
/// components (pca.hpp), or the channels' moments (standardise.hpp).
bool rest_on_release(const FeatureSettings& settings);

/// Shape of an example once what its features rest on is released. Throws InputError where the
/// training set does not fit.
Shape released_shape(const Dataset& train, const FeatureSettings& settings);

/// The release that features rest on: one of the Gaussian mechanism, of sensitivity 1 and noise
/// multiplier sigma, which must have been paid for. size: number of training examples as it is
/// known to the public, max_examples: a bound on the real one. Returns the rows of a matrix: pca
/// [dimensions, inputs], channels [2, channels]; empty where features rest on nothing.
std::vector<float> release_for_features(const Dataset& train, const FeatureSettings& settings,
                                        double size, double max_examples, double sigma, Gate& gate);

/// Examples become features by what was released: a function of each example alone. Throws
/// InputError where `released` does not fit them; `name` is the data's.
void apply_release(Dataset& data, const FeatureSettings& settings,
                   const std::vector<float>& released, const std::string& name);

/// The release as a tensor of a released model: "features.projection" or "features.scaling".
void add_release(TensorFile& file, const FeatureSettings& settings,
                 const std::vector<float>& released);
/// Throws InputError where there is none.
std::vector<float> read_release(const TensorFile& file, const FeatureSettings& settings,
                                const std::string& source);

}  // namespace cudp
