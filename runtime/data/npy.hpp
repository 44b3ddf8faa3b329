#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/bytes.hpp"

namespace cudp {

/// Reads an array in NumPy's .npy format, versions 1 to 3, from front to back. The array must be
/// little-endian and row-major, of floating-point or whole numbers.
class NpyReader {
 public:
  /// Reads the header. Throws InputError.
  explicit NpyReader(std::unique_ptr<ByteReader> bytes);

  const std::string& name() const { return bytes_->name(); }
  /// Returns the shape: at least one dimension; the product fits in 63 bits.
  const std::vector<std::uint64_t>& shape() const { return shape_; }
  /// Returns NumPy's name of the type, e.g. "<f4".
  const std::string& type() const { return type_; }
  bool is_floating() const { return kind_ == 'f'; }
  bool is_bytes() const { return kind_ == 'u' && size_ == 1; }

  /// Reads the next out.size() numbers; doubles are rounded to float. Throws InputError if the file
  /// ends before them, or if they are not floating-point.
  void read(std::span<float> out);
  /// Reads the next out.size() numbers of type uint8. Throws InputError if the file ends before
  /// them, or if they are of another type.
  void read(std::span<std::uint8_t> out);
  /// Reads the next out.size() numbers of any type; whole numbers beyond 2^53 are rounded. Throws
  /// InputError if the file ends before them.
  void read(std::span<double> out);
  /// Reads the next out.size() whole numbers. A number above 2^63 - 1 becomes -1; booleans are 0
  /// and 1. Throws InputError if the file ends before them, or if they are floating-point.
  void read(std::span<std::int64_t> out);
  /// Throws InputError unless the file ends here.
  void expect_end();
  /// Number of numbers for which memory may be reserved before they arrive, whatever the header
  /// claims.
  std::uint64_t reservable() const { return bytes_->reservable() / size_; }

 private:
  void parse_header(std::string_view text);
  void parse_type(std::string_view text);
  /// Reads the file's next bytes. Throws InputError if it ends before them.
  void read_bytes(std::span<std::uint8_t> out);
  /// Reads the next numbers as they lie into buffer_.
  void read_numbers(std::size_t count);
  double floating(std::size_t i) const;            // number i of buffer_, of a floating-point type
  std::int64_t signed_whole(std::size_t i) const;  // number i of buffer_, of a signed type
  std::uint64_t whole(std::size_t i) const;        // number i of buffer_, of an unsigned type

  std::unique_ptr<ByteReader> bytes_;
  std::string type_;
  char kind_ = 'f';       // f: floating-point, i: signed, u: unsigned, b: boolean
  std::size_t size_ = 4;  // bytes of a number
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint8_t> buffer_;
};

/// Converts an IEEE half-precision number to float.
float float_of_half(std::uint16_t bits);

}  // namespace cudp
