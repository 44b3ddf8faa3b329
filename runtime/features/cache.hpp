#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/random/random.hpp"

namespace cudp {

/// Computed features on disk, for the next run on the same data. They say as much as the data they
/// were made from, so they belong to the user: the folder is made with mode 0700 and its files with
/// 0600, and neither name nor content of one ever goes into a run's release. Names are keyed hashes
/// under a key of the folder's own: a listing of it, in a backup say, tells no guess from another.
class FeatureCache {
 public:
  /// The folder is made when first written to. An empty path keeps nothing.
  explicit FeatureCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The features stored under `key`, if the file is whole and has `count` of them.
  std::optional<std::vector<float>> read(const std::string& key, std::size_t count) const;

  /// Stores them: whole or not at all, also when several processes store the same. At most
  /// kMaxBytes bytes are kept; the files written longest ago go first. Throws Error with the
  /// system's reason.
  void write(const std::string& key, const std::vector<float>& features) const;

  static constexpr std::uintmax_t kMaxBytes = std::uintmax_t{16} << 30;

 private:
  std::filesystem::path file(const std::string& key, const RandomKey& names) const;
  std::filesystem::path folder_;
};

/// $XDG_CACHE_HOME/cudp, or ~/.cache/cudp; empty where neither is known.
std::filesystem::path user_cache_folder();

}  // namespace cudp
