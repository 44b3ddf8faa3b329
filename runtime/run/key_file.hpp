#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "runtime/base/random_key.hpp"

namespace cudp {

/// Stores the random key of a run in progress, readable by the owner only: anyone who has the key
/// can subtract the noise from the model.
void write_key(const std::filesystem::path& path, const RandomKey& key);

/// Reads a key; nullopt if the file is missing or damaged.
std::optional<SharedKey> read_key(const std::filesystem::path& path);

/// Overwrites the file with zeros, durably, and removes it, and also one that a crash left half
/// written. Does nothing if there is none. (A file system that copies on write, or a disk that
/// moves its blocks, may keep the old ones.)
void erase_key(const std::filesystem::path& path);

/// Returns a number that distinguishes keys. It has 64 bits of information about the 256, so it
/// stays in the private folder, too.
std::uint64_t key_check(const RandomKey& key);

}  // namespace cudp
