#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "runtime/base/random_key.hpp"

namespace cudp {

/// Keeps the random key of a run in progress, readable by the owner only: whoever holds it can
/// subtract the noise from the model.
void write_key(const std::filesystem::path& path, const RandomKey& key);

/// Empty if the file is missing or damaged.
std::optional<SharedKey> read_key(const std::filesystem::path& path);

/// Overwrites the file with zeros, durably, before it is removed, and one that a crash left half
/// written; nothing where there is none. (A
/// file system that copies on write, or a disk that moves its blocks, may keep the old ones.)
void erase_key(const std::filesystem::path& path);

/// Tells keys apart; 64 bits of the 256, so it stays in the private folder too.
std::uint64_t key_check(const RandomKey& key);

}  // namespace cudp
