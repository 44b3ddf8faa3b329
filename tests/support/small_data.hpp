#pragma once
// Parts that random small data sets share: settings_data.hpp and tests/audit/neighbours.hpp.
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>

#include "tests/support/data_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp::small_data {

/// Words that notes are made of.
inline constexpr const char* kWords[] = {"a",      "cold",  "pain", "no",
                                         "better", "worse", "day",  "night"};

/// Returns a row of a table of notes, without its line end: fewer than `end` words, each followed
/// by a space, and the label.
inline std::string note_of(std::mt19937_64& random, std::uint64_t end) {
  std::string text;
  for (std::uint64_t n = random() % end; n > 0; --n)
    text += std::string(kWords[random() % std::size(kWords)]) + " ";
  return text + (random() % 2 == 0 ? ",no" : ",yes");
}

/// Writes grey images of 28 x 28 bytes, and a label byte for each, to the files
/// PART-images-idx3-ubyte and PART-labels-idx1-ubyte.
inline void write_grey_images(const std::filesystem::path& folder, const std::string& part,
                              const std::string& pixels, const std::string& labels) {
  std::filesystem::create_directories(folder);
  const auto count = static_cast<std::uint32_t>(labels.size());
  write_text(folder / (part + "-images-idx3-ubyte"), idx_images(count, 28, 28, pixels));
  write_text(folder / (part + "-labels-idx1-ubyte"), idx_labels(count, labels));
}

}  // namespace cudp::small_data
