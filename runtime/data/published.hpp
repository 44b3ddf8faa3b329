#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// A file that a published name stands for.
struct PublishedFile {
  std::string_view set;     ///< mnist, ..., or an embedding: glove, minilm
  std::string_view file;    ///< its usual name, unpacked
  std::string_view sha256;  ///< of its unpacked content, hexadecimal
};

/// Every file that may be read under a published name.
std::span<const PublishedFile> published_files();

/// A claim of the user about a file: that it is this one of a published set, or (empty) that it is
/// their own. The claim decides what is public, never the content: a published file that is not
/// claimed to be one is private.
struct Claim {
  std::string set{};
  std::string file{};
  std::string own{};  ///< for whom it is a file of their own: what to type
};

/// Opens a file, lets `read` read it and, where it is claimed to be a published one, requires that
/// its unpacked content is that of published_files(). It is hashed as it is read. progress: as of
/// open_bytes. Throws what `read` throws; InputError, in place of that too, where the content is
/// other than claimed.
void read_claimed(const std::filesystem::path& path, const Claim& claim,
                  const std::function<void(ByteReader&)>& read, Busy* progress = nullptr);

/// Checks the claim for content that was read already. sha256: its digest.
void check_claim(const std::filesystem::path& path, const Claim& claim, std::string_view sha256);

/// SHA-256 of bytes, hexadecimal.
std::string sha256_of(std::span<const std::uint8_t> bytes);

}  // namespace cudp
