#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/random/random.hpp"

namespace cudp {

/// Cache on disk for computed features, so that the next run on the same data need not compute them
/// again. Features reveal as much as the data, so only the user may read the cache: its folder has
/// mode 0700 and its files 0600, and neither their names nor their content enter the published
/// results of a run. File names are keyed hashes, with a key that is stored in the folder, so that
/// a listing of the folder (e.g. in a backup) cannot be used to test guesses about the data.
class FeatureCache {
 public:
  /// Makes a cache in a folder, which is created by the first write(). An empty path disables the
  /// cache.
  explicit FeatureCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Returns the cached features for `key`, a text that identifies the data and the settings from
  /// which they were computed. Returns nullopt unless the cache has exactly `count` numbers for
  /// this key, undamaged.
  std::optional<std::vector<float>> read(const std::string& key, std::size_t count) const;

  /// Stores features in the cache, atomically, even if several processes store the same ones. The
  /// cache is limited to kMaxBytes; the oldest files are removed first. Throws Error if a file
  /// cannot be written.
  void write(const std::string& key, const std::vector<float>& features) const;

  static constexpr std::uintmax_t kMaxBytes = std::uintmax_t{16} << 30;

 private:
  std::filesystem::path file(const std::string& key, const RandomKey& names) const;
  std::filesystem::path folder_;
};

/// Returns a BLAKE2b digest of 256 bits, as 64 hexadecimal digits, of the bytes and their number.
/// Equal digests mean equal contents, even if an attacker chose some of the bytes (which is not
/// true of checksum() in files.hpp). The digest has no key, so anyone who has it can test guesses
/// about the content. threads: number of threads, 0 for one per core; the result does not depend on
/// it.
std::string content_digest(std::span<const std::byte> content, int threads);

/// Throws InputError if other users can list the cache's folder, because the sizes of its files
/// show the number of rows, or if they can write to it. If the folder does not exist, does nothing.
void check_cache_folder(const std::filesystem::path& folder);

/// Makes an existing cache folder accessible to its owner only (mode 0700); returns whether that
/// succeeded.
bool make_cache_folder_private(const std::filesystem::path& folder);

/// Returns the path of the user's default cache folder: $XDG_CACHE_HOME/cudp or, if that variable
/// is not set, $HOME/.cache/cudp; an empty path if neither variable is set.
std::filesystem::path user_cache_folder();

}  // namespace cudp
