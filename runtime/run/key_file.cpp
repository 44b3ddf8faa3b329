#include "runtime/run/key_file.hpp"

#include <cstring>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"

namespace cudp {
namespace {

constexpr std::string_view kKeyMagic = "cudp key 1\n";

/// Returns the content of the key file: magic number, the key's bytes, their checksum.
std::string encode(const RandomKey& key) {
  const std::uint64_t check = key_check(key);
  std::string bytes(kKeyMagic);
  bytes.append(reinterpret_cast<const char*>(key.words), sizeof key.words);
  bytes.append(reinterpret_cast<const char*>(&check), sizeof check);
  return bytes;
}

void wipe(std::string& bytes) { explicit_bzero(bytes.data(), bytes.size()); }

}  // namespace

std::uint64_t key_check(const RandomKey& key) {
  return checksum({reinterpret_cast<const char*>(key.words), sizeof key.words});
}

void write_key(const std::filesystem::path& path, const RandomKey& key, Sync sync) {
  std::string bytes = encode(key);
  write_file(path, bytes, 0600, sync);
  wipe(bytes);
}

std::optional<SharedKey> read_key(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::string bytes = read_file(path);
  RandomKey key{};
  if (bytes.size() < kKeyMagic.size() + sizeof key.words) return std::nullopt;
  std::memcpy(key.words, bytes.data() + kKeyMagic.size(), sizeof key.words);
  SharedKey secret(key);
  wipe(key);
  std::string expected = encode(secret.key());
  const bool intact = bytes == expected;
  wipe(bytes);
  wipe(expected);
  if (!intact) return std::nullopt;
  return secret;
}

void erase_key(const std::filesystem::path& path) {
  std::error_code error;
  std::vector<std::filesystem::path> files = {path};
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), error))
    if (is_unfinished(entry.path().filename().string(), path.filename().string()))
      files.push_back(entry.path());
  for (const std::filesystem::path& file : files) {
    if (!std::filesystem::is_regular_file(file, error)) continue;
    overwrite_with_zeros(file);
    std::filesystem::remove(file, error);
    if (error) throw Error(file.string() + ": cannot remove it: " + error.message());
  }
}

}  // namespace cudp
