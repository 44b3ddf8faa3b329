#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// An array of NumPy's .npy format, versions 1 to 3: little-endian, row by row, of floating-point
/// or whole numbers. It is read from front to back.
class NpyReader {
 public:
  /// Reads the header. Throws InputError.
  explicit NpyReader(std::unique_ptr<ByteReader> bytes);

  const std::string& name() const { return bytes_->name(); }
  /// At least one number, each at least 0; their product fits in 63 bits.
  const std::vector<std::uint64_t>& shape() const { return shape_; }
  /// NumPy's name of the type, e.g. "<f4".
  const std::string& type() const { return type_; }
  bool is_floating() const { return kind_ == 'f'; }

  /// Fills `out` with the next numbers, all of which must be there. Doubles are rounded to float.
  /// Throws InputError where the file ends before them, or where they are not floating-point.
  void read(std::span<float> out);
  /// Reads whole numbers likewise; one above 2^63 - 1 is given as -1. Booleans are 0 and 1.
  void read(std::span<std::int64_t> out);
  /// Throws InputError unless the file ends here.
  void expect_end();
  /// How many numbers may be reserved before they arrive, whatever the header claims.
  std::uint64_t reservable() const { return bytes_->reservable() / size_; }

 private:
  void parse_header(std::string_view text);
  void parse_type(std::string_view text);
  void read_bytes(std::size_t numbers);

  std::unique_ptr<ByteReader> bytes_;
  std::string type_;
  char kind_ = 'f';       // f: floating-point, i: signed, u: unsigned, b: boolean
  std::size_t size_ = 4;  // bytes of a number
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint8_t> buffer_;
};

/// The float of the bits of an IEEE half-precision number.
float float_of_half(std::uint16_t bits);

}  // namespace cudp
