#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Name and SHA-256 digest of a file of a published data set or word embedding.
struct PublishedFile {
  std::string_view set;     ///< name of the data set (mnist, ...) or embedding (glove, minilm)
  std::string_view file;    ///< usual name of the file, without .gz or .xz
  std::string_view sha256;  ///< digest of its uncompressed content, hexadecimal
};

/// Returns all files of public data sets and embeddings whose digest the program knows.
std::span<const PublishedFile> published_files();

/// The user's claim about the origin of a file: it is the file `file` of the published data set
/// `set`, or, if `set` is empty, the user's own. Only this claim determines whether the data are
/// public, never the content: a published file without such a claim is private.
struct Claim {
  std::string set{};
  std::string file{};
  std::string own{};  ///< advice for a user whose file has other content
};

/// Opens a file and calls `read` on it. If the file is claimed to be published, its uncompressed
/// content is hashed while it is read, and InputError is thrown if it differs from the published
/// content. Also throws the exceptions of `read`. progress: receives the fraction of the file that
/// has been read; may be null. compression: how to recognise that the user's own file (claim.set is
/// empty) is compressed.
void read_claimed(const std::filesystem::path& path, const Claim& claim,
                  const std::function<void(ByteReader&)>& read, Busy* progress = nullptr,
                  Compression compression = Compression::by_content);

/// Checks the user's claim about a file that has been read already. sha256: digest of the file's
/// uncompressed content, hexadecimal. Throws InputError if the claim names a published file with
/// another digest.
void check_claim(const std::filesystem::path& path, const Claim& claim, std::string_view sha256);

/// Returns the SHA-256 digest of `bytes`, hexadecimal.
std::string sha256_of(std::span<const std::uint8_t> bytes);

}  // namespace cudp
