#include "runtime/data/cifar.hpp"

#include <algorithm>
#include <string>

namespace cudp {
namespace {

constexpr std::size_t kRecord = 1 + kCifarPixels;
constexpr std::size_t kRecordsAtOnce = 64;
constexpr std::uint64_t kUsualBatch = 10'000;

/// The place of the record that comes next.
std::string place(const CifarRecords& records) {
  return "record " + std::to_string(records.labels.size());
}

}  // namespace

CifarRecords read_cifar(ByteReader& reader) {
  CifarRecords records;
  const std::uint64_t likely = std::min(reader.reservable() / kRecord, kUsualBatch);
  records.pixels.reserve(likely * kCifarPixels);
  records.labels.reserve(likely);
  std::vector<std::uint8_t> buffer(kRecordsAtOnce * kRecord);
  for (;;) {
    const std::size_t n = reader.read(buffer);
    for (std::size_t at = 0; at < n; at += kRecord) {
      if (n - at < kRecord)
        bad_input(reader.name(), place(records), std::to_string(kRecord) + " bytes",
                  "the end of the file after " + std::to_string(n - at));
      if (buffer[at] >= kCifarClasses)
        bad_input(reader.name(), place(records), "a label of 0 to 9", std::to_string(buffer[at]));
      const auto pixels = buffer.begin() + static_cast<std::ptrdiff_t>(at) + 1;
      records.labels.push_back(buffer[at]);
      records.pixels.insert(records.pixels.end(), pixels, pixels + kCifarPixels);
    }
    if (n < buffer.size()) break;
  }
  if (records.labels.empty())
    bad_input(reader.name(), "", "CIFAR records of " + std::to_string(kRecord) + " bytes",
              "an empty file");
  return records;
}

}  // namespace cudp
