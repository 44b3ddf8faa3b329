#include "runtime/features/features.hpp"

#include <stdexcept>
#include <string_view>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/error.hpp"
#include "runtime/features/cache.hpp"
#include "runtime/features/normalise.hpp"
#include "runtime/features/scatter_tables.hpp"
#include "runtime/run/files.hpp"

namespace cudp {
namespace {

template <class T>
std::uint64_t checksum_of(const std::vector<T>& v) {
  return checksum({reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)});
}

/// All that the features follow from, to the last bit: backends round differently.
std::string cache_key(const Dataset& d, const std::string& arithmetic) {
  return fmt::format("scatter 1 J=2 L=8 order=2 {} {}x{}x{} {} bytes={:x} floats={:x} {} {}",
                     arithmetic, d.size(), d.shape.channels, d.shape.height, d.shape.width,
                     checksum_of(d.bytes), checksum_of(d.floats), d.scale, d.shift);
}

std::vector<float> scatter(const Dataset& data, const FeatureSettings& settings,
                           const Backend& backend, Reporter& reporter) {
  const FeatureCache cache(settings.cache == "none"   ? std::filesystem::path()
                           : settings.cache == "auto" ? user_cache_folder()
                                                      : std::filesystem::path(settings.cache));
  const std::string key = cache_key(data, backend.arithmetic_name);
  const std::size_t count =
      data.size() * static_cast<std::size_t>(scattered_shape(data.shape).size());
  if (auto kept = cache.read(key, count)) return *std::move(kept);
  std::vector<float> features = backend.scatter(
      data, settings.threads, [&](double share) { reporter.work("scattering features", share); });
  try {
    cache.write(key, features);
  } catch (const Error& e) {
    reporter.warn(fmt::format("the features are not kept for the next run: {}", e.what()));
  }
  return features;
}

}  // namespace

FeatureSettings feature_settings(const TrainConfig& config) {
  return {.kind = config.features,
          .groups = static_cast<int>(config.feature_groups),
          .cache = config.feature_cache,
          .threads = static_cast<int>(config.threads)};
}

void make_features(Dataset& data, const FeatureSettings& settings, const Backend& backend,
                   Reporter& reporter) {
  if (settings.kind != Features::scatter) return;
  if (data.shape.height < 4 || data.shape.width < 4)
    throw InputError(
        fmt::format("--features scatter: expected images of at least 4 x 4 pixels, found {} x {}",
                    data.shape.height, data.shape.width));
  const Shape shape = scattered_shape(data.shape);
  if (settings.groups > 0 && shape.channels % settings.groups != 0)
    throw InputError(
        fmt::format("--feature-groups: expected a number that divides {} channels, found {}",
                    shape.channels, settings.groups));
  data.floats = scatter(data, settings, backend, reporter);
  data.bytes = {};
  data.shape = shape;
  if (settings.groups > 0) normalise_groups(data.floats, shape, settings.groups, settings.threads);
}

}  // namespace cudp
