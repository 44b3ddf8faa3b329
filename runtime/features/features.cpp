#include "runtime/features/features.hpp"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/choices.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/scatter_tables.hpp"
#include "runtime/features/cache.hpp"
#include "runtime/features/normalise.hpp"
#include "runtime/features/pca.hpp"
#include "runtime/features/standardise.hpp"

namespace cudp {
namespace {

/// Returns the key of features in the cache: a text that identifies everything on which the
/// features depend to the last bit, i.e. data, settings, and the arithmetic of this build, its
/// backend and its libraries. Features of other data, or with other rounding, must have another
/// key. Otherwise one row could affect the features of other rows, because all rows determine which
/// cache entry is found.
std::string cache_key(const Dataset& d, const Backend& backend, int threads) {
  ensure(d.rows == nullptr, "scattering needs all images in memory");
  const auto digest = [&](auto numbers) { return content_digest(std::as_bytes(numbers), threads); };
  const std::string libraries =
      backend.library_arithmetic ? backend.library_arithmetic(Network{}, true) : "";
  return fmt::format("scatter 2 J=2 L=8 order=2 {} {}{} {}x{}x{}x{} bytes={} floats={} {} {}",
                     program_id(), backend.arithmetic_name, libraries, d.size(), d.shape.channels,
                     d.shape.height, d.shape.width, digest(d.byte_values()),
                     digest(d.float_values()), d.scale, d.shift);
}

/// Returns the folder of the cache; "" if there is none. setting: value of --feature-cache. Throws
/// InputError if other users can list or change the folder that it names.
std::filesystem::path cache_folder(const std::string& setting, Reporter& reporter) {
  if (setting == "none") return {};
  if (setting != "auto") {
    check_cache_folder(setting);
    return setting;
  }
  std::filesystem::path folder = user_cache_folder();
  if (folder.empty() || make_cache_folder_private(folder)) return folder;
  reporter.warn("the features are not kept for the next run: others can use " + folder.string());
  return {};
}

std::vector<float> scatter(const Dataset& data, const FeatureSettings& settings,
                           const Backend& backend, Reporter& reporter) {
  const FeatureCache cache(cache_folder(settings.cache, reporter));
  const std::string key = cache_key(data, backend, settings.threads);
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

std::string tensor_name(const FeatureSettings& settings) {
  return settings.standardise ? "features.scaling" : "features.projection";
}

}  // namespace

FeatureSettings feature_settings(const TrainConfig& config) {
  return {.normalise = config.normalise,
          .kind = config.features,
          .groups = static_cast<int>(config.feature_groups),
          .standardise = config.features == Features::scatter && config.feature_standardise,
          .second_order = config.feature_second_order,
          .dimensions = config.feature_dimensions,
          .whiten = config.feature_whiten,
          // No cache if rows are held out. Each part of the rows would get its cache file, and the
          // files would show which rows were held out. No other run could use the files, because no
          // other run has the same parts.
          .cache = config.holdout ? "none" : config.feature_cache,
          .threads = static_cast<int>(config.threads)};
}

void make_features(Dataset& data, const FeatureSettings& settings, const Backend& backend,
                   Reporter& reporter) {
  if (settings.normalise != Normalise::none) {
    if (data.is_bytes() || data.is_text())
      throw InputError(fmt::format("--normalise: expected none with {}, found {}",
                                   data.is_text() ? "texts" : "images",
                                   name_of(settings.normalise)));
    data = dense(std::move(data));
    own_features(data);
    normalise_rows(data.floats, static_cast<std::size_t>(data.shape.size()), settings.normalise,
                   settings.threads);
  }
  if (settings.kind != Features::scatter) return;
  if (data.shape.height < 4 || data.shape.width < 4)
    throw InputError(
        fmt::format("--features scatter: expected images of at least 4 x 4 pixels, found {} x {}",
                    data.shape.height, data.shape.width));
  const Shape shape = scattered_shape(data.shape);
  const int groups = settings.standardise ? 0 : settings.groups;
  if (groups > 0 && shape.channels % groups != 0)
    throw InputError(
        fmt::format("--feature-groups: expected a number that divides {} channels, found {}",
                    shape.channels, groups));
  data.floats = scatter(data, settings, backend, reporter);
  data.bytes = {};
  data.borrowed = nullptr;
  data.holds_bytes = false;
  data.shape = shape;
  if (groups > 0) normalise_groups(data.floats, shape, groups, settings.threads);
}

bool rest_on_release(const FeatureSettings& settings) {
  return settings.kind == Features::pca || settings.standardise;
}

Shape released_shape(const Dataset& train, const FeatureSettings& settings) {
  if (settings.standardise) check_standardise(train);
  if (settings.kind != Features::pca) return train.shape;
  check_pca(train, settings.dimensions);
  return {.channels = static_cast<int>(settings.dimensions)};
}

std::vector<float> release_for_features(const Dataset& train, const FeatureSettings& settings,
                                        double size, double max_examples, double sigma,
                                        Gate& gate) {
  if (settings.kind == Features::pca)
    return dp_pca(train, max_examples, static_cast<int>(settings.dimensions), settings.whiten,
                  sigma, gate, settings.threads, *settings.ranks);
  if (settings.standardise)
    return dp_channel_scaling(train, size, max_examples, sigma, settings.second_order, gate,
                              settings.threads, *settings.ranks);
  return {};
}

void apply_release(Dataset& data, const FeatureSettings& settings,
                   const std::vector<float>& released, const std::string& name) {
  const auto numbers = static_cast<std::size_t>(data.shape.size());
  if (settings.kind == Features::pca) {
    const std::size_t wanted = released.size() / static_cast<std::size_t>(settings.dimensions);
    if (numbers != wanted)
      throw InputError(
          fmt::format("{}: expected examples of {} numbers, found {}", name, wanted, numbers));
    project(data, released, settings.threads);
  } else if (settings.standardise) {
    if (static_cast<std::size_t>(data.shape.channels) * 2 != released.size())
      throw InputError(fmt::format("{}: expected features of {} channels, found {}", name,
                                   released.size() / 2, data.shape.channels));
    scale_channels(data, released, settings.threads);
  }
}

void add_release(TensorFile& file, const FeatureSettings& settings,
                 const std::vector<float>& released) {
  if (!rest_on_release(settings)) return;
  const std::int64_t rows = settings.standardise ? 2 : settings.dimensions;
  ParameterTensor t;
  t.name = tensor_name(settings);
  t.shape = {static_cast<int>(rows),
             static_cast<int>(static_cast<std::int64_t>(released.size()) / rows)};
  t.offset = file.values.size();
  t.size = released.size();
  file.tensors.push_back(t);
  file.values.insert(file.values.end(), released.begin(), released.end());
}

std::vector<float> read_release(const TensorFile& file, const FeatureSettings& settings,
                                const std::string& source) {
  if (!rest_on_release(settings)) return {};
  const std::string name = tensor_name(settings);
  const auto t = std::ranges::find(file.tensors, name, &ParameterTensor::name);
  if (t == file.tensors.end() || t->size == 0)
    throw InputError(source + ": expected a tensor " + name + ", found none");
  const auto first = file.values.begin() + static_cast<std::ptrdiff_t>(t->offset);
  return {first, first + static_cast<std::ptrdiff_t>(t->size)};
}

}  // namespace cudp
