#include "runtime/features/cache.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <sodium.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/interrupt.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/base/threads.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Header at the start of a cache file. It is followed by the key, zeros up to a multiple of 64
/// bytes, and the features.
struct Header {
  std::array<char, 8> magic = {'c', 'u', 'd', 'p', 'f', 'e', 'a', '1'};
  std::uint64_t key_size = 0;
  std::uint64_t count = 0;
  std::uint64_t checksum = 0;  ///< checksum of the features

  std::size_t features_at() const { return (sizeof(Header) + key_size + 63) / 64 * 64; }
  bool operator==(const Header&) const = default;
};

std::string_view bytes_of(const std::vector<float>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float)};
}

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw Error(path.string() + ": cannot " + what + ": " + std::strerror(errno));
}

void write_all(int file, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t n = ::write(file, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "write");
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

/// A new cache file while it is written. It has a temporary name, so that other processes do not
/// read it before it is complete. The destructor removes it unless keep() was called.
class Draft {
 public:
  explicit Draft(const fs::path& folder) : path_((folder / ".features-XXXXXX").string()) {
    const FilesInChange lock;
    file_ = ::mkostemp(path_.data(), O_CLOEXEC);  // mode 0600
    if (file_ < 0) fail(path_, "create");
    unfinished_.emplace(path_);
  }
  ~Draft() {
    ::close(file_);
    if (!kept_) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void add(std::string_view content) const { write_all(file_, content, path_); }
  void keep(const fs::path& as) {
    const FilesInChange lock;
    if (::rename(path_.c_str(), as.c_str()) != 0) fail(as, "rename to it");
    kept_ = true;
  }
  /// Adds a second name `as` to the file (a hard link), unless there is a file of that name.
  void offer(const fs::path& as) const {
    if (::link(path_.c_str(), as.c_str()) != 0 && errno != EEXIST) fail(as, "link to it");
  }

 private:
  std::string path_;
  int file_ = -1;
  bool kept_ = false;
  std::optional<UnfinishedFile> unfinished_;
};

bool is_features(const fs::directory_entry& e) { return e.path().extension() == ".features"; }

/// Reads from a file in the cache folder the key with which the names of cache files are computed
/// (keyed hashes). Returns nullopt if that file is missing or too short.
std::optional<RandomKey> name_key(const fs::path& folder) {
  std::ifstream in(folder / "names", std::ios::binary);
  RandomKey key{};
  if (!in.read(reinterpret_cast<char*>(key.words), sizeof key.words)) return std::nullopt;
  return key;
}

/// Returns the key with which the names of cache files are computed (keyed hashes). If the cache
/// folder has no key, makes one and stores it there. If several processes do so at the same time,
/// all of them use the key that was stored first.
RandomKey make_name_key(const fs::path& folder) {
  if (const auto key = name_key(folder)) return *key;
  const Draft draft(folder);
  const RandomKey fresh = make_key();
  draft.add({reinterpret_cast<const char*>(fresh.words), sizeof fresh.words});
  draft.offer(folder / "names");
  const auto key = name_key(folder);  // key of the process that was first
  if (!key) throw Error((folder / "names").string() + ": damaged; remove it");
  return *key;
}

/// Removes the oldest files from the cache until `more` further bytes fit below its maximum size.
/// Ignores files that another process removes at the same time.
void evict_oldest(const fs::path& folder, std::uintmax_t more) {
  struct Kept {
    fs::file_time_type time;
    std::uintmax_t size;
    fs::path path;
  };
  std::vector<Kept> files;
  std::error_code gone;
  std::uintmax_t total = more;
  for (const auto& e : fs::directory_iterator(folder, gone)) {
    if (!is_features(e)) continue;
    const Kept k{e.last_write_time(gone), e.file_size(gone), e.path()};
    if (gone) continue;
    total += k.size;
    files.push_back(k);
  }
  std::ranges::sort(files, {}, &Kept::time);
  for (const Kept& k : files) {
    if (total <= FeatureCache::kMaxBytes) return;
    fs::remove(k.path, gone);
    total -= k.size;
  }
}

}  // namespace

fs::path FeatureCache::file(const std::string& key, const RandomKey& names) const {
  std::array<unsigned char, 16> hash{};
  ::crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(key.data()),
                       key.size(), reinterpret_cast<const unsigned char*>(names.words),
                       sizeof names.words);
  return folder_ / (fmt::format("{:02x}", fmt::join(hash, "")) + ".features");
}

std::optional<std::vector<float>> FeatureCache::read(const std::string& key,
                                                     std::size_t count) const {
  if (folder_.empty()) return std::nullopt;
  const std::optional<RandomKey> names = name_key(folder_);
  if (!names) return std::nullopt;
  const fs::path path = file(key, *names);
  std::ifstream in(path, std::ios::binary);
  Header header;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  const Header expected{.key_size = key.size(), .count = count, .checksum = header.checksum};
  std::string stored(key.size(), '\0');
  if (header != expected || !in.read(stored.data(), static_cast<std::streamsize>(stored.size())) ||
      stored != key)
    return std::nullopt;
  std::error_code error;
  if (fs::file_size(path, error) != header.features_at() + count * sizeof(float) || error)
    return std::nullopt;
  std::vector<float> features(count);
  in.seekg(static_cast<std::streamoff>(header.features_at()));
  in.read(reinterpret_cast<char*>(features.data()),
          static_cast<std::streamsize>(count * sizeof(float)));
  if (!in || checksum(bytes_of(features)) != header.checksum) return std::nullopt;
  return features;
}

void FeatureCache::write(const std::string& key, const std::vector<float>& features) const {
  if (folder_.empty()) return;
  if (!fs::exists(folder_)) {
    std::error_code error;
    fs::create_directories(folder_.parent_path(), error);
    if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) fail(folder_, "create");
  }
  const std::string_view content = bytes_of(features);
  const Header header{
      .key_size = key.size(), .count = features.size(), .checksum = checksum(content)};
  const RandomKey names = make_name_key(folder_);
  evict_oldest(folder_, content.size());
  Draft draft(folder_);
  draft.add({reinterpret_cast<const char*>(&header), sizeof header});
  draft.add(key);
  draft.add(std::string(header.features_at() - sizeof header - key.size(), '\0'));
  draft.add(content);
  draft.keep(file(key, names));
}

namespace {

constexpr std::size_t kContentBlock = std::size_t{1} << 20;  // bytes per block

using ContentDigest = std::array<unsigned char, crypto_generichash_BYTES>;

ContentDigest blake2b(std::span<const std::byte> bytes) {
  ContentDigest digest{};
  ::crypto_generichash(digest.data(), digest.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                       0);
  return digest;
}

constexpr unsigned kOfOthers = 0077;  // permissions of group and others

}  // namespace

std::string content_digest(std::span<const std::byte> content, int threads) {
  // Hashes the size, followed by the digests of the content's blocks, which threads compute in
  // parallel. The size determines the length of every block.
  const std::size_t blocks = (content.size() + kContentBlock - 1) / kContentBlock;
  std::vector<ContentDigest> digests(blocks);
  ThreadTeam team(blocks > 1 ? threads : 1);
  team.run(blocks, [&](std::size_t b, int) {
    const std::size_t begin = b * kContentBlock;
    digests[b] = blake2b(content.subspan(begin, std::min(kContentBlock, content.size() - begin)));
  });
  std::vector<std::byte> all;
  const std::uint64_t size = content.size();
  const auto add = [&](std::span<const std::byte> part) {
    all.insert(all.end(), part.begin(), part.end());
  };
  add(std::as_bytes(std::span(&size, 1)));
  for (const ContentDigest& digest : digests) add(std::as_bytes(std::span(digest)));
  return fmt::format("{:02x}", fmt::join(blake2b(all), ""));
}

void check_cache_folder(const fs::path& folder) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return;  // write() creates it or reports the error
  if (about.st_uid == ::geteuid() && (about.st_mode & kOfOthers) == 0) return;
  throw InputError(fmt::format(
      "--feature-cache {}: expected a folder that only you can list, because sizes of its files "
      "show the number of rows, found {} (mode {:04o}). Type chmod 700, name a folder that does "
      "not exist yet, or give none",
      folder.string(),
      about.st_uid == ::geteuid() ? "one that others can use" : "one of another user",
      about.st_mode & 07777u));
}

bool make_cache_folder_private(const fs::path& folder) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return true;
  return about.st_uid == ::geteuid() &&
         ((about.st_mode & kOfOthers) == 0 || ::chmod(folder.c_str(), 0700) == 0);
}

fs::path user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fs::path(cache) / "cudp";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache" / "cudp";
  return {};
}

}  // namespace cudp
