#include "runtime/data/given_arrays.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/error.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/given_array_reader.hpp"
#include "runtime/data/npy.hpp"

namespace cudp {
namespace {

/// Returns the half-open range of addresses in which the elements of array a lie.
std::pair<const std::byte*, const std::byte*> addresses(const GivenArray& a) {
  const std::byte* low = a.data;
  const std::byte* high = a.data + a.item_size();
  for (std::size_t d = 0; d < a.shape.size(); ++d) {
    if (a.shape[d] == 0) return {a.data, a.data};
    const auto span = static_cast<std::int64_t>(a.shape[d] - 1) * a.strides[d];
    (span < 0 ? low : high) += span;
  }
  return {low, high};
}

/// Reads a number of type T from an address that may not be aligned.
template <class T>
T at(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

bool GivenArray::is_contiguous() const {
  std::int64_t distance = static_cast<std::int64_t>(item_size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != distance) return false;
    distance *= static_cast<std::int64_t>(shape[d]);
  }
  return true;
}

bool overlap(const GivenArray& a, const GivenArray& b) {
  const auto [a_low, a_high] = addresses(a);
  const auto [b_low, b_high] = addresses(b);
  return a_low < b_high && b_low < a_high;
}

GivenArrayReader::GivenArrayReader(const GivenArray& array)
    : array_(array), index_(array.shape.size(), 0), next_(array.data) {
  ensure(!array.shape.empty() && array.shape.size() == array.strides.size(),
         "an array needs a shape and strides");
  left_ = 1;
  for (const std::uint64_t side : array.shape) left_ *= side;
}

/// Calls take(address) for each of the next `count` elements, in row-major order. Take: type of the
/// function take().
template <class Take>
void GivenArrayReader::for_each_next(std::size_t count, const Take& take) {
  ensure(count <= left_, "an array has no more elements");
  left_ -= count;
  const std::size_t last = array_.shape.size() - 1;
  const std::int64_t stride = array_.strides[last];
  while (count > 0) {
    const auto run =
        static_cast<std::size_t>(std::min<std::uint64_t>(count, array_.shape[last] - index_[last]));
    for (std::size_t i = 0; i < run; ++i, next_ += stride) take(next_);
    count -= run;
    index_[last] += run;
    for (std::size_t d = last; d > 0 && index_[d] == array_.shape[d]; --d) {
      next_ += array_.strides[d - 1] - static_cast<std::int64_t>(index_[d]) * array_.strides[d];
      index_[d] = 0;
      ++index_[d - 1];
    }
  }
}

void GivenArrayReader::read(std::span<float> out) {
  if (!is_floating()) bad_input(name(), "", "floating-point numbers", "type " + type());
  float* to = out.data();
  switch (array_.item_size()) {
    case 2:
      return for_each_next(
          out.size(), [&](const std::byte* p) { *to++ = float_of_half(at<std::uint16_t>(p)); });
    case 4:
      return for_each_next(out.size(), [&](const std::byte* p) { *to++ = at<float>(p); });
    default:
      return for_each_next(out.size(),
                           [&](const std::byte* p) { *to++ = static_cast<float>(at<double>(p)); });
  }
}

void GivenArrayReader::read(std::span<std::uint8_t> out) {
  if (!is_bytes()) bad_input(name(), "", "bytes (uint8)", "type " + type());
  std::uint8_t* to = out.data();
  for_each_next(out.size(), [&](const std::byte* p) { *to++ = at<std::uint8_t>(p); });
}

void GivenArrayReader::read(std::span<double> out) {
  double* to = out.data();
  const auto take = [&]<class T>(T) {
    for_each_next(out.size(), [&](const std::byte* p) { *to++ = static_cast<double>(at<T>(p)); });
  };
  const std::size_t size = array_.item_size();
  if (type()[1] == 'f') {
    if (size == 2)
      for_each_next(out.size(), [&](const std::byte* p) {
        *to++ = static_cast<double>(float_of_half(at<std::uint16_t>(p)));
      });
    else if (size == 4)
      take(float{});
    else
      take(double{});
  } else if (type()[1] == 'i') {
    if (size == 1)
      take(std::int8_t{});
    else if (size == 2)
      take(std::int16_t{});
    else if (size == 4)
      take(std::int32_t{});
    else
      take(std::int64_t{});
  } else {
    if (size == 1)
      take(std::uint8_t{});
    else if (size == 2)
      take(std::uint16_t{});
    else if (size == 4)
      take(std::uint32_t{});
    else
      take(std::uint64_t{});
  }
}

void GivenArrayReader::read(std::span<std::int64_t> out) {
  if (is_floating()) bad_input(name(), "", "whole numbers", "type " + type());
  std::int64_t* to = out.data();
  const bool is_signed = type()[1] == 'i';
  const auto take = [&]<class Signed, class Unsigned>(Signed, Unsigned) {
    for_each_next(out.size(), [&](const std::byte* p) {
      *to++ = is_signed ? static_cast<std::int64_t>(at<Signed>(p))
                        : static_cast<std::int64_t>(
                              std::min<std::uint64_t>(at<Unsigned>(p), std::uint64_t{1} << 63));
      if (!is_signed && to[-1] < 0) to[-1] = -1;
    });
  };
  switch (array_.item_size()) {
    case 1:
      return take(std::int8_t{}, std::uint8_t{});
    case 2:
      return take(std::int16_t{}, std::uint16_t{});
    case 4:
      return take(std::int32_t{}, std::uint32_t{});
    default:
      return take(std::int64_t{}, std::uint64_t{});
  }
}

void GivenArrayReader::expect_end() { ensure(left_ == 0, "an array has elements left"); }

}  // namespace cudp
