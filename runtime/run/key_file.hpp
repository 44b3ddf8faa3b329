#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "runtime/base/files.hpp"
#include "runtime/base/random_key.hpp"

namespace cudp {

/// Writes the random key of a run in progress to a file that only the owner can read. The key must
/// stay secret: with it, the noise can be computed and subtracted from the released values.
void write_key(const std::filesystem::path& path, const RandomKey& key, Sync sync = Sync::yes);

/// Reads a run's random key from its file; nullopt if the file is missing or damaged.
std::optional<SharedKey> read_key(const std::filesystem::path& path);

/// Overwrites the key file with zeros, syncs it to disk and removes it; a crash of the machine may
/// bring back its name, with the zeros. Does the same with a temporary key file that a crash may
/// have left. Does nothing if there is no such file. (A copy-on-write file system, or a disk that
/// moves its blocks, may keep old blocks.)
void erase_key(const std::filesystem::path& path);

/// Returns a 64-bit checksum of a key, to check whether two keys are the same. It reveals 64 of the
/// key's 256 bits, so it must be stored only in the run's private folder, like the key.
std::uint64_t key_check(const RandomKey& key);

}  // namespace cudp
