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
/// again. Features reveal as much as the data they were made from, so the cache belongs to the
/// user: its folder has mode 0700 and its files 0600, and no name or content of a file enters a
/// run's release. File names are hashes under a key of the folder's own, so a listing of the folder
/// (in a backup, say) does not confirm a guess about the data.
class FeatureCache {
 public:
  /// folder: folder of the cache, created by the first write(); an empty path disables the cache.
  explicit FeatureCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Returns the cached features for `key`, a text that identifies data and settings; nullopt
  /// unless there are `count` of them, undamaged.
  std::optional<std::vector<float>> read(const std::string& key, std::size_t count) const;

  /// Stores features in the cache, atomically, even if several processes store the same ones. The
  /// cache is limited to kMaxBytes; files written longest ago are removed first. Throws Error with
  /// the system's reason.
  void write(const std::string& key, const std::vector<float>& features) const;

  static constexpr std::uintmax_t kMaxBytes = std::uintmax_t{16} << 30;

 private:
  std::filesystem::path file(const std::string& key, const RandomKey& names) const;
  std::filesystem::path folder_;
};

/// Returns a BLAKE2b digest of 256 bits, 64 hexadecimal digits, of the bytes and their number.
/// Unlike with checksum() (files.hpp), it is infeasible to find two contents with the same digest,
/// so equal digests mean equal contents, even if the author of a row chose its bytes. The digest
/// has no key, so with it guesses about the content can be tested. threads: number of threads, 0
/// for every core; the result does not depend on it.
std::string content_digest(std::span<const std::byte> content, int threads);

/// Throws InputError if other users can list the folder, because sizes of files in it show the
/// number of rows, or change it. A folder that does not exist is fine.
void check_cache_folder(const std::filesystem::path& folder);

/// Makes an existing folder accessible to its owner only; returns whether that succeeded.
bool make_cache_folder_private(const std::filesystem::path& folder);

/// Returns $XDG_CACHE_HOME/cudp, or ~/.cache/cudp; an empty path if neither variable is set.
std::filesystem::path user_cache_folder();

}  // namespace cudp
