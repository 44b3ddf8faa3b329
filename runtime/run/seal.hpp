#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Message authentication codes with a key derived from a run's random key. Without that key it is
/// impossible to make a file that the run accepts as its own, or to test guesses about data against
/// a code. Keyed BLAKE2b, by libsodium.
class Seal {
 public:
  explicit Seal(const RandomKey& key);

  /// Returns the code of `bytes`, 64 hexadecimal digits. The same bytes have different codes for
  /// different purposes.
  std::string tag(std::string_view purpose, std::string_view bytes) const;
  /// Returns whether `tag` is the code, in a time that does not depend on where it differs.
  bool matches(std::string_view purpose, std::string_view bytes, std::string_view tag) const;

  /// Returns codes of a training set in blocks of 256 examples, 16 bytes each, so that a rank with
  /// a part of it can check its part. A code covers the examples' features or words and labels, in
  /// order, the numbers by which they and their units are drawn, and the index of the block in the
  /// whole set.
  std::string block_tags(const Dataset& train, int threads) const;

 private:
  SecretKey key_;
};

/// Returns the code of a whole training set, or another part of the data, from the codes of all its
/// blocks. train: the set, or the range of it with the first example.
std::string data_tag(const Seal& seal, const Dataset& train, const std::string& block_tags,
                     std::string_view part = "data");

/// Content of a file, and the code in its last line.
struct SealedFile {
  std::string content;
  std::string tag;  ///< code of the content; "" if the file has none
};

/// Writes atomically and durably, readable by the owner only.
void write_sealed(const std::filesystem::path& path, std::string_view purpose,
                  std::string_view content, const Seal& seal);
/// Reads a file, and does not check its code. Throws Error if it cannot be read.
SealedFile read_sealed(const std::filesystem::path& path);

}  // namespace cudp
