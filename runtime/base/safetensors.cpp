#include "runtime/base/safetensors.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

using Json = nlohmann::ordered_json;
constexpr std::size_t kAlignment = 64;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit

std::string text(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// One entry of the header, checked against the size of the data.
ParameterTensor read_entry(const std::string& name, const Json& entry, std::size_t data_size,
                           const std::string& place) {
  const auto fail = [&](const std::string& what) { throw InputError(place + ": " + what); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    fail("expected dtype, shape and data_offsets, found " + text(entry));
  if (entry["dtype"] != "F32") fail("expected dtype F32, found " + text(entry["dtype"]));
  const Json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    fail("expected two data_offsets, found " + text(offsets));
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();

  ParameterTensor t;
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
  if (begin > end || end > data_size || begin % sizeof(float) != 0 ||
      end - begin != size * sizeof(float))
    fail("expected " + std::to_string(size * sizeof(float)) + " bytes inside the " +
         std::to_string(data_size) + " of data, found " + text(offsets));
  t.offset = begin / sizeof(float);
  t.size = size;
  return t;
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
  // Trailing spaces are part of the format.
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
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length)
    throw InputError(source + ", byte 0: expected an 8-byte header length, found " +
                     std::to_string(bytes.size()) + " bytes");
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  if (length > kLongestHeader || length > bytes.size())
    throw InputError(source + ", byte 0: expected a header length of at most " +
                     std::to_string(bytes.size()) + ", found " + std::to_string(length));
  const Json header = Json::parse(bytes.substr(0, length), nullptr, false);
  if (!header.is_object())
    throw InputError(source + ", byte 8: expected a JSON object, found something else");
  const std::string_view data = bytes.substr(length);

  TensorFile file;
  std::size_t used = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) throw InputError(source + ", __metadata__: expected an object");
      for (const auto& [key, value] : entry.items())
        file.metadata[key] = value.is_string() ? value.get<std::string>() : text(value);
      continue;
    }
    std::string place = source;
    place.append(", ").append(name);
    file.tensors.push_back(read_entry(name, entry, data.size(), place));
    used += file.tensors.back().size * sizeof(float);
  }
  if (used != data.size())
    throw InputError(source + ": expected " + std::to_string(used) + " bytes of data, found " +
                     std::to_string(data.size()));
  file.values.resize(data.size() / sizeof(float));
  std::memcpy(file.values.data(), data.data(), data.size());
  return file;
}

}  // namespace cudp
