#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cudp {

/// Reads an array of numbers from a file or from memory, front to back, row by row.
class ArrayReader {
 public:
  ArrayReader() = default;
  virtual ~ArrayReader() = default;
  ArrayReader(const ArrayReader&) = delete;
  ArrayReader& operator=(const ArrayReader&) = delete;
  ArrayReader(ArrayReader&&) = delete;
  ArrayReader& operator=(ArrayReader&&) = delete;

  virtual const std::string& name() const = 0;
  /// Returns the shape of the array: its size along each dimension. There is at least one
  /// dimension, and the product of the sizes fits in 63 bits.
  virtual const std::vector<std::uint64_t>& shape() const = 0;
  /// Returns NumPy's name of the element type, e.g. "<f4" for float32.
  virtual const std::string& type() const = 0;
  bool is_floating() const { return type()[1] == 'f'; }
  bool is_bytes() const { return type() == "|u1"; }

  /// Reads the next out.size() numbers; doubles are rounded to float. Throws InputError if the
  /// array has fewer numbers left, or if its type is not floating-point.
  virtual void read(std::span<float> out) = 0;
  /// Reads the next out.size() bytes. Throws InputError if the array has fewer bytes left, or if
  /// its elements are not bytes.
  virtual void read(std::span<std::uint8_t> out) = 0;
  /// Reads the next out.size() numbers of any type; whole numbers beyond 2^53 are rounded. Throws
  /// InputError if the array has fewer numbers left.
  virtual void read(std::span<double> out) = 0;
  /// Reads the next out.size() whole numbers. A number above 2^63 - 1 becomes -1; booleans are 0
  /// and 1. Throws InputError if the array has fewer numbers left, or if its type is
  /// floating-point.
  virtual void read(std::span<std::int64_t> out) = 0;
  /// Throws InputError if the array's file has more bytes than the elements that were read, or if
  /// elements are left to read.
  virtual void expect_end() = 0;
  /// Returns an upper bound on the number of elements left. A caller may allocate this much memory
  /// before it reads them, because the bound follows from the actual size of the data, not from the
  /// array's header, which may be wrong.
  virtual std::uint64_t reservable() const = 0;
};

}  // namespace cudp
