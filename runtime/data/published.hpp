#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// A file of a published data set or embedding.
struct PublishedFile {
  std::string_view set;     ///< mnist, ..., or the embeddings glove and minilm
  std::string_view file;    ///< its usual name, uncompressed
  std::string_view sha256;  ///< digest of its uncompressed content, hexadecimal
};

/// Returns every file that may be read under a published name.
std::span<const PublishedFile> published_files();

/// Claim of the user about a file: that it is this file of a published set, or (if empty) that it
/// is the user's own. The claim decides what is public, never the content: a published file that is
/// not claimed to be one is private.
struct Claim {
  std::string set{};
  std::string file{};
  std::string own{};  ///< advice for a user whose file is not the published one
};

/// Opens a file and calls `read` on it. If the file is claimed to be a published one, requires that
/// its uncompressed content is that of published_files(); it is hashed while it is read. Throws as
/// `read` does, but if the content differs from the claim, InputError instead.
/// progress: as in open_bytes.
void read_claimed(const std::filesystem::path& path, const Claim& claim,
                  const std::function<void(ByteReader&)>& read, Busy* progress = nullptr);

/// Checks a claim about content that was read already. sha256: digest of the content. Throws
/// InputError.
void check_claim(const std::filesystem::path& path, const Claim& claim, std::string_view sha256);

/// Returns the SHA-256 of bytes, hexadecimal.
std::string sha256_of(std::span<const std::uint8_t> bytes);

}  // namespace cudp
