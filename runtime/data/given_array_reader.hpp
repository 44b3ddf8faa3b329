#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/array_reader.hpp"
#include "runtime/data/given_arrays.hpp"

namespace cudp {

/// Reads an array that the calling program has in memory, in row-major order of its elements,
/// whatever its strides. The array must outlive the reader.
class GivenArrayReader final : public ArrayReader {
 public:
  explicit GivenArrayReader(const GivenArray& array);

  const std::string& name() const override { return array_.name; }
  const std::vector<std::uint64_t>& shape() const override { return array_.shape; }
  const std::string& type() const override { return array_.type; }
  void read(std::span<float> out) override;
  void read(std::span<std::uint8_t> out) override;
  void read(std::span<double> out) override;
  void read(std::span<std::int64_t> out) override;
  void expect_end() override;
  std::uint64_t reservable() const override { return left_; }

 private:
  template <class Take>
  void for_each_next(std::size_t count, const Take& take);

  const GivenArray& array_;
  std::vector<std::uint64_t> index_;  // index of the next element, one entry per dimension
  const std::byte* next_;             // address of the next element
  std::uint64_t left_ = 0;            // number of elements left
};

}  // namespace cudp
