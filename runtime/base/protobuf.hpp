#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace cudp {

/// Writes a Protocol Buffers message in its wire format, field by field. It has the four kinds of
/// field that ONNX and TensorBoard files need. (The library libprotobuf would be an additional
/// dependency with a code generator, and slow down every build.)
class ProtoMessage {
 public:
  void integer(int field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
  }
  void real(int field, float value) {
    key(field, 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  }
  void text(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const ProtoMessage& value) { text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, unsigned wire_type) {
    varint(static_cast<std::uint64_t>(field) << 3 | wire_type);
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(0x80 | (value & 0x7f));
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace cudp
