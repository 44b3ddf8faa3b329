#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Message authentication codes by a key of their own, which follows from a run's random key:
/// whoever does not have that key cannot make a file that the run takes for its own, and cannot
/// test guesses about data against a code. Keyed BLAKE2b, by libsodium.
class Seal {
 public:
  explicit Seal(const RandomKey& key);

  /// The code of `bytes`, 64 hexadecimal digits; texts of different purpose have different ones.
  std::string tag(std::string_view purpose, std::string_view bytes) const;
  /// Whether `tag` is the code, in a time that does not tell where it differs.
  bool holds(std::string_view purpose, std::string_view bytes, std::string_view tag) const;

  /// Codes of a training set in blocks of 256 examples, so that whoever has a part can check it: 16
  /// bytes a block, of the examples' numbers or words and labels, in order, of the numbers that
  /// they and their units are drawn by, and of the block's place in the whole set.
  std::string block_tags(const Dataset& train, int threads) const;

 private:
  SecretKey key_;
};

/// The code of a whole training set, or another part of the data, from those of all its blocks.
/// train: it, or a range of it with its first example.
std::string data_tag(const Seal& seal, const Dataset& train, const std::string& block_tags,
                     std::string_view part = "data");

/// A file and the code that stands in its last line.
struct SealedFile {
  std::string content;
  std::string tag;  ///< empty where there is none
};

/// Writes as write_atomically does, readable by the owner only.
void write_sealed(const std::filesystem::path& path, std::string_view purpose,
                  std::string_view content, const Seal& seal);
/// Throws Error where the file cannot be read. Checks nothing.
SealedFile read_sealed(const std::filesystem::path& path);

}  // namespace cudp
