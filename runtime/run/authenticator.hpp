#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/files.hpp"
#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

struct RowUse;
/// Function that reads all rows of a data set's file and passes them to `use`. It exists for a
/// caller that must read all rows anyway, so that the file is read only once. Returns false if it
/// did not read all rows.
using ReadAllRows = std::function<bool(const RowUse& use)>;

/// Computes and checks message authentication codes (keyed BLAKE2b, by libsodium). The key is
/// derived from the run's random key. Rows are hashed first by Poly1305, which is faster; the code
/// covers its secret value. Without that key nobody can forge a file that the run accepts
/// as its own, or find out whether a guess about the data is right by comparing codes.
class Authenticator {
 public:
  explicit Authenticator(const RandomKey& key);

  /// Returns the authentication code of `bytes`, 64 hexadecimal digits. purpose: kind of file; it
  /// is part of what is authenticated, so one file cannot pass for a file of another kind.
  std::string tag(std::string_view purpose, std::string_view bytes) const;
  /// Returns whether `tag` is the authentication code of `bytes` for this purpose. Compares in
  /// constant time.
  bool matches(std::string_view purpose, std::string_view bytes, std::string_view tag) const;

  /// Returns the authentication codes of a training set, 16 bytes for each block of 256 examples.
  /// (There is one code per block so that each rank can compute those of its own range.) The code
  /// of a block covers, in this order: its examples' features or word ids, labels, sampling indices
  /// and units of privacy, and the index of the block in the whole set. read: reads the rows if
  /// they are in a file; if empty, or if it returns false, this function reads them itself.
  std::string block_tags(const Dataset& train, int threads, const ReadAllRows& read = {}) const;

 private:
  SecretKey key_;
  SecretKey rows_key_;  ///< key of the fast hash of rows, derived from key_
};

/// Combines the authentication codes of all blocks of a data set into one code of the whole data
/// set. train: the data set; if it is distributed over ranks (processes), the range of rank 0.
/// block_tags: codes of all blocks, from Authenticator::block_tags(). part: a name of the data set,
/// which the code also covers.
std::string data_tag(const Authenticator& authenticator, const Dataset& train,
                     const std::string& block_tags, std::string_view part = "data");

/// Content of a file, and the authentication code in its last line.
struct AuthenticatedFile {
  std::string content;
  std::string tag;  ///< authentication code; "" if the file has none
};

/// Writes `content` with its authentication code to a file, atomically. Only the file's owner can
/// read it. purpose: kind of file, which the code also covers. sync: whether to wait until the file
/// is on disk.
void write_authenticated(const std::filesystem::path& path, std::string_view purpose,
                         std::string_view content, const Authenticator& authenticator,
                         Sync sync = Sync::yes);
/// Reads a file and the authentication code in its last line, without checking the code. Throws
/// Error if the file cannot be read.
AuthenticatedFile read_authenticated(const std::filesystem::path& path);

}  // namespace cudp
