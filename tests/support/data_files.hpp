#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>

#include "runtime/base/error.hpp"
#include "tests/support/deflated.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {

/// Temporary folder of one test, removed by the destructor.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (parent_of_test_folders() / "cudp-data-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path() const { return path_.string(); }

  /// Writes a file, making the folders it lies in, and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

/// Returns the message with which `action` refuses its input, with `folder` replaced by "DIR";
/// empty if it does not refuse.
template <class Action>
std::string refusal_of(const Action& action, const std::string& folder = "") {
  try {
    action();
  } catch (const InputError& e) {
    std::string text = e.what();
    while (!folder.empty() && text.find(folder) != std::string::npos)
      text.replace(text.find(folder), folder.size(), "DIR");
    return text;
  }
  return "";
}

inline std::string gzipped(std::string_view bytes) { return deflated(bytes, 16 + MAX_WBITS); }

inline std::string xzipped(std::string_view bytes) {
  std::string out(lzma_stream_buffer_bound(bytes.size()), '\0');
  std::size_t size = 0;
  const lzma_ret rc = lzma_easy_buffer_encode(
      1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(bytes.data()),
      bytes.size(), reinterpret_cast<std::uint8_t*>(out.data()), &size, out.size());
  if (rc != LZMA_OK) throw std::runtime_error("xz failed");
  out.resize(size);
  return out;
}

inline std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

inline std::string idx_images(std::uint32_t count, std::uint32_t rows, std::uint32_t columns,
                              std::string_view pixels) {
  return big_endian(2051) + big_endian(count) + big_endian(rows) + big_endian(columns) +
         std::string(pixels);
}

inline std::string idx_labels(std::uint32_t count, std::string_view labels) {
  return big_endian(2049) + big_endian(count) + std::string(labels);
}

}  // namespace cudp
