#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "runtime/base/random_key.hpp"

namespace cudp {

/// Stores the random key of a run in progress in a file that only the owner can read: anyone who
/// has the key can subtract the noise from the model.
void write_key(const std::filesystem::path& path, const RandomKey& key);

/// Reads the key file; nullopt if it is missing or damaged.
std::optional<SharedKey> read_key(const std::filesystem::path& path);

/// Overwrites the key file with zeros, durably, and removes it, together with one that a crash left
/// half written. Does nothing if there is none. (A copy-on-write file system, or a disk that moves
/// its blocks, may keep old blocks.)
void erase_key(const std::filesystem::path& path);

/// Returns a 64-bit checksum by which keys are told apart. It reveals 64 of the key's 256 bits, so
/// it must stay in the private folder, too.
std::uint64_t key_check(const RandomKey& key);

}  // namespace cudp
