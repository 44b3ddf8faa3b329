#pragma once
#include <string>

#include "runtime/config.hpp"
#include "runtime/dataset.hpp"
#include "runtime/train/backend.hpp"
#include "runtime/train/reporter.hpp"

namespace cudp {

/// What a model is shown of an image, and where computed features are kept.
struct FeatureSettings {
  Features kind = Features::none;
  int groups = 0;              ///< of channels, normalised within each example; 0: not at all
  std::string cache = "auto";  ///< a folder, "auto" for the user's cache folder, or "none"
  int threads = 0;
};

FeatureSettings feature_settings(const TrainConfig& config);

/// Turns images into scattering features: a function of each example alone, so neighbouring data
/// sets stay neighbours and nothing is to be paid. Principal components are (pca.hpp). Throws
/// InputError where the data are not images that fit.
void make_features(Dataset& data, const FeatureSettings& settings, const Backend& backend,
                   Reporter& reporter);

}  // namespace cudp
