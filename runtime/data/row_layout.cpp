#include "runtime/data/row_layout.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.hpp"

namespace cudp {

RowWriter::RowWriter(const RowLayout& layout, std::uint8_t* row) : layout_(layout), row_(row) {}

void RowWriter::number(float x) {
  ensure(numbers_ < layout_.numbers() && std::isfinite(x), "a row's numbers are counted, finite");
  std::memcpy(row_ + std::ptrdiff_t{4} * numbers_, &x, sizeof x);
  ++numbers_;
  square_ += static_cast<double>(x) * static_cast<double>(x);
}

void RowWriter::code(std::uint32_t c) {
  const auto features = static_cast<std::uint32_t>(layout_.features);
  ensure(codes_ < layout_.codes && c <= features, "a row's codes are counted, and none is larger");
  std::uint8_t* const codes = row_ + std::ptrdiff_t{4} * (layout_.numbers() + 1);
  const auto two = static_cast<std::uint16_t>(c);
  switch (layout_.code_bytes()) {
    case 1:
      codes[codes_] = static_cast<std::uint8_t>(c);
      break;
    case 2:
      std::memcpy(codes + std::ptrdiff_t{2} * codes_, &two, sizeof two);
      break;
    default:
      std::memcpy(codes + std::ptrdiff_t{4} * codes_, &c, sizeof c);
  }
  ++codes_;
  if (c < features) square_ += 1.0;
}

void RowWriter::finish() {
  ensure(numbers_ == layout_.numbers() && codes_ == layout_.codes, "a row must be complete");
  const auto square = static_cast<float>(square_);
  std::memcpy(row_ + std::ptrdiff_t{4} * numbers_, &square, sizeof square);
  const std::int64_t used =
      std::int64_t{4} * (numbers_ + 1) + std::int64_t{layout_.code_bytes()} * codes_;
  std::fill(row_ + used, row_ + layout_.row_bytes(), std::uint8_t{0});
}

void expand_row(const CodedRows& rows, const std::uint8_t* row, std::span<float> x) {
  std::ranges::fill(x, 0.0f);
  for (int k = 0; k < rows.numbers; ++k)
    std::memcpy(&x[static_cast<std::size_t>(rows.number_feature[k])], row + std::ptrdiff_t{4} * k,
                sizeof(float));
  for (int k = 0; k < rows.codes; ++k)
    if (const std::uint32_t c = code_of(rows, row, k);
        c < static_cast<std::uint32_t>(rows.features))
      x[c] = 1.0f;
}

}  // namespace cudp
