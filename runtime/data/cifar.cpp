#include "runtime/data/cifar.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

namespace cudp {
namespace {

/// Size of a record of a CIFAR-10 file: one byte with the label, then the pixels [bytes].
constexpr std::size_t kRecord = 1 + kCifarPixels;
/// Number of records that are read from the file in one call.
constexpr std::size_t kRecordsAtOnce = 64;
/// Limit on the memory that is reserved before reading a stream of unknown size [records].
constexpr std::uint64_t kUsualBatch = 10'000;

std::string place_of(std::uint64_t record) { return "record " + std::to_string(record); }

/// Throws InputError if the stream ends inside a record.
void expect_whole(const ByteReader& reader) {
  if (const std::uint64_t left = reader.position() % kRecord; left != 0)
    bad_input(reader.name(), place_of(reader.position() / kRecord),
              std::to_string(kRecord) + " bytes",
              "the end of the file after " + std::to_string(left));
}

}  // namespace

std::uint64_t count_cifar(ByteReader& reader) {
  return reader.skip(std::numeric_limits<std::uint64_t>::max()) / kRecord;
}

CifarRecords read_cifar(ByteReader& reader, ExampleRange range) {
  CifarRecords records;
  reader.skip(range.begin * kRecord);
  // Reserves memory, because a vector that grows takes twice the memory. If `range` is not all
  // records, the caller has counted the records, so the number of records to read is known.
  const bool is_counted = range.end != kAllRecords.end;
  const std::uint64_t likely = std::min<std::uint64_t>(
      reader.reservable() / kRecord, is_counted ? std::uint64_t{range.size()} : kUsualBatch);
  records.pixels.reserve(likely * kCifarPixels);
  records.labels.reserve(likely);
  std::vector<std::uint8_t> buffer(kRecordsAtOnce * kRecord);
  for (std::size_t record = range.begin; record < range.end;) {
    const std::span part =
        std::span(buffer).first(std::min(kRecordsAtOnce, range.end - record) * kRecord);
    const std::size_t n = reader.read(part);
    for (std::size_t at = 0; n - at >= kRecord; at += kRecord, ++record) {
      if (buffer[at] >= kCifarClasses)
        bad_input(reader.name(), place_of(record), "a label of 0 to 9", std::to_string(buffer[at]));
      const auto pixels = buffer.begin() + static_cast<std::ptrdiff_t>(at) + 1;
      records.labels.push_back(buffer[at]);
      records.pixels.insert(records.pixels.end(), pixels, pixels + kCifarPixels);
    }
    if (n < part.size()) break;
  }
  reader.skip(std::numeric_limits<std::uint64_t>::max());
  expect_whole(reader);
  return records;
}

}  // namespace cudp
