#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/array_reader.hpp"
#include "runtime/data/bytes.hpp"

namespace cudp {

/// Reads an array in NumPy's .npy format, versions 1 to 3, from front to back. The array must be
/// little-endian and row-major, of floating-point or whole numbers.
class NpyReader final : public ArrayReader {
 public:
  /// Reads the header at the start of `bytes`. Throws InputError if it is malformed, or if the
  /// array's type or layout is not supported.
  explicit NpyReader(std::unique_ptr<ByteReader> bytes);

  const std::string& name() const override { return bytes_->name(); }
  const std::vector<std::uint64_t>& shape() const override { return shape_; }
  const std::string& type() const override { return type_; }
  void read(std::span<float> out) override;
  void read(std::span<std::uint8_t> out) override;
  void read(std::span<double> out) override;
  void read(std::span<std::int64_t> out) override;
  void expect_end() override;
  std::uint64_t reservable() const override { return bytes_->reservable() / size_; }
  /// Returns the offset in the file at which the array's elements begin [bytes]; nullopt if the
  /// array is inside an archive or compressed.
  std::optional<std::uint64_t> first_byte() const {
    return bytes_->is_file() ? std::optional(first_byte_) : std::nullopt;
  }

 private:
  void parse_header(std::string_view text);
  void parse_type(std::string_view text);
  /// Reads the next out.size() bytes of the file. Throws InputError if the file has fewer bytes
  /// left.
  void read_bytes(std::span<std::uint8_t> out);
  /// Reads the bytes of the next `count` elements into buffer_, in the type that the file has.
  void read_numbers(std::size_t count);
  double floating(std::size_t i) const;            // element i of buffer_, of a floating-point type
  std::int64_t signed_whole(std::size_t i) const;  // element i of buffer_, of a signed type
  std::uint64_t whole(std::size_t i) const;        // element i of buffer_, of an unsigned type

  std::unique_ptr<ByteReader> bytes_;
  std::string type_;
  char kind_ = 'f';       // f: floating-point, i: signed, u: unsigned, b: boolean
  std::size_t size_ = 4;  // size of an element [bytes]
  std::uint64_t first_byte_ = 0;
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint8_t> buffer_;
};

/// Converts an IEEE half-precision number, given by its 16 bits, to float.
float float_of_half(std::uint16_t bits);

}  // namespace cudp
