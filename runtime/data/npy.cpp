#include "runtime/data/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace cudp {
namespace {

using namespace std::string_view_literals;

/// First bytes of a .npy file.
constexpr std::string_view kMagic = "\x93NUMPY"sv;
/// Maximum size of the header of a .npy file [bytes].
constexpr std::size_t kLongestHeader = std::size_t{64} << 10;

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

/// Parser of the Python dictionary in the header of a .npy file.
class Literal {
 public:
  Literal(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("'") + c + "'");
  }

  /// Reads a text in single or double quotes, without escapes.
  std::string_view text() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    if (quote != '\'' && quote != '"') fail("a text");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail("the end of a text");
    const std::string_view out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return out;
  }

  bool truth() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair{"True"sv, true}, std::pair{"False"sv, false}})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    fail("True or False");
  }

  std::uint64_t number() {
    skip_blanks();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) fail("a whole number");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // suffix of Python 2
    return value;
  }

  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> out;
    expect('(');
    while (!take(')')) {
      if (out.size() >= 32) fail("at most 32 dimensions");
      out.push_back(number());
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return out;
  }

  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

  [[noreturn]] void fail(const std::string& expected) const {
    bad_input(file_, "header of a .npy file", expected,
              rest_.empty() ? "its end" : shown(rest_, 20));
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() &&
           (rest_.front() == ' ' || rest_.front() == '\n' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }

  std::string_view rest_;
  const std::string& file_;
};

}  // namespace

float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

NpyReader::NpyReader(std::unique_ptr<ByteReader> bytes) : bytes_(std::move(bytes)) {
  std::array<std::uint8_t, 12> start{};
  const std::size_t first = bytes_->read(std::span(start).first(10));
  const std::string_view magic(reinterpret_cast<const char*>(start.data()), kMagic.size());
  if (first < 10 || magic != kMagic)
    bad_input(name(), "byte 0", "an array in NumPy's .npy format", "something else");
  const int version = start[6];
  if (version < 1 || version > 3)
    bad_input(name(), "byte 6", "version 1 to 3 of the .npy format", std::to_string(version));
  std::size_t length = start[8] | static_cast<std::size_t>(start[9]) << 8;
  if (version > 1) {
    const std::size_t more = bytes_->read(std::span(start).subspan(10));
    if (more < 2) bad_input(name(), "byte 10", "the length of the header", "the end of the file");
    length |= static_cast<std::size_t>(start[10]) << 16 | static_cast<std::size_t>(start[11]) << 24;
  }
  if (length > kLongestHeader)
    bad_input(name(), "byte 8", "a header of at most 64 KiB", std::to_string(length) + " bytes");
  std::string header(length, '\0');
  const std::size_t n =
      bytes_->read({reinterpret_cast<std::uint8_t*>(header.data()), header.size()});
  if (n < length)
    bad_input(name(), "byte 10", "a header of " + std::to_string(length) + " bytes",
              "the end of the file");
  parse_header(header);
  first_byte_ = bytes_->position();
}

void NpyReader::parse_header(std::string_view text) {
  Literal header(text, name());
  std::optional<bool> by_columns;
  bool shaped = false;
  header.expect('{');
  while (!header.take('}')) {
    const std::string_view key = header.text();
    header.expect(':');
    if (key == "descr") {
      if (!header.take('['))
        parse_type(header.text());
      else
        header.fail("a type of numbers");
    } else if (key == "fortran_order") {
      by_columns = header.truth();
    } else if (key == "shape") {
      shape_ = header.tuple();
      shaped = true;
    } else {
      header.fail("the keys descr, fortran_order and shape");
    }
    if (!header.take(',')) {
      header.expect('}');
      break;
    }
  }
  if (!header.at_end() || type_.empty() || !by_columns || !shaped)
    header.fail("descr, fortran_order and shape, and nothing else");
  if (shape_.empty()) bad_input(name(), "", "an array", "one number");
  if (*by_columns && shape_.size() > 1)
    bad_input(name(), "", "an array that lies row by row; np.ascontiguousarray(x) makes it so",
              "one that lies column by column");
  std::uint64_t numbers = 1;
  for (const std::uint64_t side : shape_) {
    constexpr std::uint64_t kMaxNumbers = std::uint64_t{1} << 60;
    if (side > kMaxNumbers || (side > 0 && numbers > kMaxNumbers / side))
      bad_input(name(), "", "fewer numbers", "a shape of more than 2^60");
    numbers *= side;
  }
}

void NpyReader::parse_type(std::string_view text) {
  constexpr std::string_view kTypes[] = {"<f2", "<f4", "<f8", "|i1", "|u1", "<i2",
                                         "<u2", "<i4", "<u4", "<i8", "<u8", "|b1"};
  if (std::find(std::begin(kTypes), std::end(kTypes), text) == std::end(kTypes))
    bad_input(name(), "",
              "numbers of a type " + std::string("<f2, <f4, <f8, or whole ones") +
                  ", little-endian; x.astype(np.float32) makes such",
              "type " + shown(text));
  type_ = text;
  kind_ = text[1];
  size_ = static_cast<std::size_t>(text[2] - '0');
}

void NpyReader::read_bytes(std::span<std::uint8_t> out) {
  const std::uint64_t at = bytes_->position();
  const std::size_t n = bytes_->read(out);
  if (n < out.size())
    bad_input(name(), "byte " + std::to_string(at + n), "all numbers that its shape has",
              "the end of the file");
}

void NpyReader::read_numbers(std::size_t count) {
  buffer_.resize(count * size_);
  read_bytes(buffer_);
}

double NpyReader::floating(std::size_t i) const {
  if (size_ == 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, buffer_.data() + 2 * i, 2);
    return static_cast<double>(float_of_half(bits));
  }
  if (size_ == 4) {
    float value = 0.0f;
    std::memcpy(&value, buffer_.data() + 4 * i, 4);
    return static_cast<double>(value);
  }
  double value = 0.0;
  std::memcpy(&value, buffer_.data() + 8 * i, 8);
  return value;
}

std::uint64_t NpyReader::whole(std::size_t i) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, buffer_.data() + size_ * i, size_);
  return bits;
}

std::int64_t NpyReader::signed_whole(std::size_t i) const {
  const unsigned unused = 64 - 8 * static_cast<unsigned>(size_);
  return static_cast<std::int64_t>(whole(i) << unused) >> unused;
}

void NpyReader::read(std::span<float> out) {
  if (!is_floating())
    bad_input(name(), "", "floating-point numbers (<f2 or <f4)", "type " + shown(type_));
  if (size_ == 4)
    return read_bytes({reinterpret_cast<std::uint8_t*>(out.data()), out.size_bytes()});
  read_numbers(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(floating(i));
}

void NpyReader::read(std::span<std::uint8_t> out) {
  if (!is_bytes()) bad_input(name(), "", "numbers of type uint8", "type " + shown(type_));
  read_bytes(out);
}

void NpyReader::read(std::span<double> out) {
  read_numbers(out.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = is_floating()  ? floating(i)
             : kind_ == 'i' ? static_cast<double>(signed_whole(i))
                            : static_cast<double>(whole(i));
}

void NpyReader::read(std::span<std::int64_t> out) {
  if (is_floating()) bad_input(name(), "", "whole numbers (such as <i8)", "type " + shown(type_));
  read_numbers(out.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = kind_ == 'i'          ? signed_whole(i)
             : whole(i) >> 63 != 0 ? -1
                                   : static_cast<std::int64_t>(whole(i));
}

void NpyReader::expect_end() { cudp::expect_end(*bytes_, "the last number"); }

}  // namespace cudp
