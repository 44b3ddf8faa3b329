#include "runtime/base/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

using Json = nlohmann::ordered_json;
/// Alignment of the data in a safetensors file [bytes]: the header is padded so that the data begin
/// at a multiple of it.
constexpr std::size_t kAlignment = 64;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // limit of the format

std::string text(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// A tensor described in the header of a safetensors file, checked against the size of the file's
/// data. In `tensor`, offset and size are in elements.
struct Entry {
  ParameterTensor tensor;
  std::string dtype;
  std::size_t begin = 0;  ///< first byte in the data that follow the header
  std::size_t end = 0;
};

/// Returns the size of a number of this type [bytes]; 0 if the type is not supported.
std::size_t width_of(std::string_view dtype) {
  if (dtype == "F64") return 8;
  if (dtype == "F32") return 4;
  return dtype == "F16" || dtype == "BF16" ? 2 : 0;
}

Entry read_entry(const std::string& name, const Json& entry, std::size_t data_size,
                 const std::string& place) {
  const auto fail = [&](const std::string& what) { throw InputError(place + ": " + what); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets") || !entry["dtype"].is_string())
    fail("expected dtype, shape and data_offsets, found " + text(entry));
  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    fail("expected two data_offsets, found " + text(offsets));
  Entry e{.tensor = {}, .dtype = entry["dtype"], .begin = offsets[0], .end = offsets[1]};

  ParameterTensor& t = e.tensor;
  t.name = name;
  std::uint64_t size = 1;
  if (!entry["shape"].is_array()) fail("expected a list as shape, found " + text(entry["shape"]));
  for (const Json& d : entry["shape"]) {
    if (!d.is_number_unsigned() || d.get<std::uint64_t>() > 0x7fffffff)
      fail("expected whole numbers as shape, found " + text(entry["shape"]));
    t.shape.push_back(d.get<int>());
    size *= d.get<std::uint64_t>();
    if (size > data_size)
      fail("expected a shape that fits the file, found " + text(entry["shape"]));
  }
  const std::size_t width = width_of(e.dtype);
  const bool inside = e.begin <= e.end && e.end <= data_size;
  if (!inside || (width > 0 && e.end - e.begin != size * width))
    fail("expected " + std::to_string(size * std::max<std::size_t>(width, 1)) +
         " bytes inside the " + std::to_string(data_size) + " of data, found " + text(offsets));
  t.offset = width > 0 ? e.begin / width : 0;
  t.size = size;
  return e;
}

/// The parsed header of a safetensors file, and the bytes after it.
struct Header {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string_view data;
};

Header read_header(std::string_view bytes, const std::string& source) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length)
    throw InputError(source + ", byte 0: expected an 8-byte header length, found " +
                     std::to_string(bytes.size()) + " bytes");
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  if (length > kLongestHeader || length > bytes.size())
    throw InputError(source + ", byte 0: expected a header length of at most " +
                     std::to_string(bytes.size()) + ", found " + std::to_string(length));
  const Json json = Json::parse(bytes.substr(0, length), nullptr, false);
  if (!json.is_object())
    throw InputError(source + ", byte 8: expected a JSON object, found something else");

  Header header{.entries = {}, .metadata = {}, .data = bytes.substr(length)};
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) throw InputError(source + ", __metadata__: expected an object");
      for (const auto& [key, value] : entry.items())
        header.metadata[key] = value.is_string() ? value.get<std::string>() : text(value);
      continue;
    }
    std::string place = source;
    place.append(", ").append(name);
    header.entries.push_back(read_entry(name, entry, header.data.size(), place));
  }
  return header;
}

/// Converts IEEE 754 binary16 to float, exactly.
float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal
    const float small = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -small : small;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <class Stored>
Stored read_stored(const char* bytes) {
  Stored value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Converts the elements of a tensor to float32 and appends them to `to`. data: the bytes after the
/// file's header. Throws InputError if an element is not finite.
void append_floats(const Entry& e, std::string_view data, const std::string& source,
                   std::vector<float>& to) {
  const std::size_t width = width_of(e.dtype);
  to.reserve(to.size() + e.tensor.size);
  for (std::size_t i = 0; i < e.tensor.size; ++i) {
    const char* const at = data.data() + e.begin + i * width;
    const float x = e.dtype == "F32"   ? read_stored<float>(at)
                    : e.dtype == "F64" ? static_cast<float>(read_stored<double>(at))
                    : e.dtype == "F16"
                        ? from_half(read_stored<std::uint16_t>(at))
                        : std::bit_cast<float>(std::uint32_t{read_stored<std::uint16_t>(at)} << 16);
    if (!std::isfinite(x))
      throw InputError(source + ", " + e.tensor.name + ": expected finite numbers, found others");
    to.push_back(x);
  }
}

/// Returns the matrix with that name, or the only matrix if `name` is empty. Throws InputError if
/// there is none, or more than one.
const Entry& matrix_entry(const Header& header, const std::string& source,
                          const std::string& name) {
  const Entry* found = nullptr;
  std::string names;
  int count = 0;
  for (const Entry& e : header.entries) {
    if ((e.dtype != "F32" && e.dtype != "F16") || e.tensor.shape.size() != 2) continue;
    if (name.empty() || e.tensor.name == name) found = &e;
    if (count++ < 8) names.append(names.empty() ? "" : ", ").append(e.tensor.name);
  }
  if (found != nullptr && (!name.empty() || count == 1)) return *found;
  if (count > 8) names += ", ...";
  throw InputError(source + ": expected a matrix of F32 or F16" +
                   (name.empty() ? ", or the name of one (--embedding-tensor)" : " named " + name) +
                   ", found " + (names.empty() ? "none" : names));
}

}  // namespace

std::string encode_safetensors(const TensorFile& file) {
  Json header;
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  for (const ParameterTensor& t : file.tensors)
    header[t.name] = {
        {"dtype", "F32"},
        {"shape", t.shape},
        {"data_offsets", {t.offset * sizeof(float), (t.offset + t.size) * sizeof(float)}}};
  std::string json = text(header);
  // The format allows trailing spaces in the header.
  while ((sizeof(std::uint64_t) + json.size()) % kAlignment != 0) json += ' ';
  const std::uint64_t length = json.size();

  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += json;
  bytes.append(reinterpret_cast<const char*>(file.values.data()),
               file.values.size() * sizeof(float));
  return bytes;
}

TensorFile decode_safetensors(std::string_view bytes, const std::string& source) {
  Header header = read_header(bytes, source);
  const std::string_view data = header.data;
  TensorFile file;
  file.metadata = std::move(header.metadata);
  std::size_t used = 0;
  for (const Entry& e : header.entries) {
    if (e.dtype != "F32")
      throw InputError(source + ", " + e.tensor.name + ": expected dtype F32, found " + e.dtype);
    if (e.begin % sizeof(float) != 0)
      throw InputError(source + ", " + e.tensor.name +
                       ": expected data_offsets that are multiples of 4, found " +
                       std::to_string(e.begin));
    file.tensors.push_back(e.tensor);
    used += e.end - e.begin;
  }
  if (used != data.size())
    throw InputError(source + ": expected " + std::to_string(used) + " bytes of data, found " +
                     std::to_string(data.size()));
  file.values.resize(data.size() / sizeof(float));
  std::memcpy(file.values.data(), data.data(), data.size());
  return file;
}

TensorFile decode_floats(std::string_view bytes, const std::string& source) {
  Header header = read_header(bytes, source);
  TensorFile file;
  file.metadata = std::move(header.metadata);
  for (const Entry& e : header.entries) {
    if (width_of(e.dtype) == 0) continue;
    file.tensors.push_back(e.tensor);
    file.tensors.back().offset = file.values.size();
    append_floats(e, header.data, source, file.values);
  }
  return file;
}

Matrix decode_matrix(std::string_view bytes, const std::string& source, const std::string& name) {
  const Header header = read_header(bytes, source);
  const Entry& e = matrix_entry(header, source, name);
  Matrix m{.rows = e.tensor.shape[0], .columns = e.tensor.shape[1], .values = {}};
  append_floats(e, header.data, source, m.values);
  return m;
}

}  // namespace cudp
