// Events for TensorBoard, read back by a reader that shares no code with the writer.
#include "runtime/results/event_file.hpp"

#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// CRC-32C by a table, and the mask of records.
std::uint32_t masked_checksum(const std::string& bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    std::uint32_t row = (crc ^ static_cast<unsigned char>(c)) & 0xffU;
    for (int i = 0; i < 8; ++i) row = (row & 1U) != 0 ? 0x82f63b78U ^ row >> 1 : row >> 1;
    crc = row ^ crc >> 8;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <class T>
T read_as(const std::string& bytes, std::size_t at) {
  T value{};
  if (at + sizeof(T) > bytes.size()) throw std::runtime_error("torn");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// Fields of a message: number of the field, and its bytes (of a varint, its value as 8 bytes).
std::multimap<int, std::string> fields_of_message(const std::string& bytes) {
  std::multimap<int, std::string> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.size()) {
    const std::uint64_t key = varint();
    const int field = static_cast<int>(key >> 3);
    std::size_t size = 0;
    switch (key & 7U) {
      case 0: {
        const std::uint64_t value = varint();
        fields.emplace(field, std::string(reinterpret_cast<const char*>(&value), 8));
        continue;
      }
      case 1:
        size = 8;
        break;
      case 2:
        size = varint();
        break;
      case 5:
        size = 4;
        break;
      default:
        throw std::runtime_error("an unknown wire type");
    }
    if (at + size > bytes.size()) throw std::runtime_error("torn");
    fields.emplace(field, bytes.substr(at, size));
    at += size;
  }
  return fields;
}

struct SeenEvent {
  std::uint64_t step = 0;
  std::string version;
  std::map<std::string, float> values;
};

std::vector<SeenEvent> read_events(const std::string& bytes) {
  std::vector<SeenEvent> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = read_as<std::uint64_t>(bytes, at);
    EXPECT_EQ(read_as<std::uint32_t>(bytes, at + 8), masked_checksum(bytes.substr(at, 8)));
    const std::string event = bytes.substr(at + 12, length);
    EXPECT_EQ(read_as<std::uint32_t>(bytes, at + 12 + length), masked_checksum(event));
    at += 16 + length;
    SeenEvent seen;
    for (const auto& [field, content] : fields_of_message(event)) {
      if (field == 2) seen.step = read_as<std::uint64_t>(content, 0);
      if (field == 3) seen.version = content;
      EXPECT_NE(field, 1) << "a time";
      if (field != 5) continue;
      for (const auto& [one, value] : fields_of_message(content)) {
        EXPECT_EQ(one, 1);
        const auto parts = fields_of_message(value);
        seen.values[parts.find(1)->second] = read_as<float>(parts.find(2)->second, 0);
      }
    }
    events.push_back(seen);
  }
  return events;
}

MetricsRow row_at(std::uint64_t step, double epsilon) {
  return {.epoch = static_cast<double>(step) / 100.0,
          .step = step,
          .epsilon = epsilon,
          .learning_rate = 0.5};
}

TEST(EventFile, HasTheNumbersOfMetrics) {
  MetricsRow tested = row_at(300, 1.5);
  tested.training_epsilon = 1.25;
  for (std::size_t i = 0; i < metrics(PredictionKind::classes).size(); ++i)
    tested.test.values.push_back(i == 5 ? std::numeric_limits<double>::quiet_NaN() : 0.75);
  const auto events = read_events(encode_events({row_at(100, 0.5), tested}));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 100u);
  EXPECT_EQ(events[1].values, (std::map<std::string, float>{
                                  {"epoch", 1.0f}, {"epsilon", 0.5f}, {"learning_rate", 0.5f}}));
  EXPECT_EQ(events[2].step, 300u);
  EXPECT_EQ(events[2].values.at("training_epsilon"), 1.25f);
  EXPECT_EQ(events[2].values.at("test_accuracy"), 0.75f);
  EXPECT_FALSE(events[2].values.contains("auc")) << "not defined";
}

TEST(EventFile, GrowsAtItsEnd) {
  const TemporaryFolder folder;
  const fs::path place = fs::path(folder.path()) / "a/b";
  EventFile file(place, {});
  const std::string path = (place / EventFile::kName).string();
  const std::vector<MetricsRow> rows = {row_at(100, 0.5), row_at(200, 0.75), row_at(300, 1.0)};
  for (std::size_t n = 1; n <= rows.size(); ++n) {
    const std::vector<MetricsRow> so_far(rows.begin(), rows.begin() + static_cast<int>(n));
    file.write(so_far);
    EXPECT_EQ(content_of(path), encode_events(so_far));
  }
}

TEST(EventFile, ContinuesItsRunOnly) {
  const TemporaryFolder folder;
  const std::string path = folder / EventFile::kName;
  const std::vector<MetricsRow> two = {row_at(100, 0.5), row_at(200, 0.75)};
  const std::vector<MetricsRow> three = {two[0], two[1], row_at(300, 1.0)};
  write_text(path, encode_events(three));
  // The run goes on from a checkpoint before the newest row.
  (void)EventFile(folder.path(), two);
  EXPECT_EQ(content_of(path), encode_events(two));
  // A process that wrote no events was in between.
  (void)EventFile(folder.path(), three);
  EXPECT_EQ(content_of(path), encode_events(three));
  // A process ended while it wrote.
  write_text(path, encode_events(three).substr(0, encode_events(three).size() - 5));
  (void)EventFile(folder.path(), three);
  EXPECT_EQ(content_of(path), encode_events(three));
  EXPECT_THROW(EventFile(folder.path(), {row_at(100, 0.25)}), InputError);
  EXPECT_THROW(EventFile(folder.path(), {}), InputError);
  EXPECT_EQ(content_of(path), encode_events(three));
}

std::string refusal_of(const std::string& folder) {
  try {
    check_events_folder(folder);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(EventFile, RefusesPlacesThatItCannotWrite) {
  const TemporaryFolder folder;
  EXPECT_EQ(refusal_of(folder.path()), "");
  EXPECT_EQ(refusal_of(folder / "new/one"), "");
  EXPECT_FALSE(fs::exists(folder / "new"));
  EXPECT_EQ(refusal_of("s3://bucket/events"),
            "--tensorboard: expected a folder of this machine, found s3://bucket/events; mount the "
            "storage, or copy the folder there afterwards");
  write_text(folder / "file", "");
  EXPECT_NE(refusal_of(folder / "file").find("expected a folder"), std::string::npos);
  EXPECT_NE(refusal_of(folder / "file/under").find("expected a folder"), std::string::npos);
  write_text(folder / EventFile::kName, encode_events({}));
  EXPECT_NE(refusal_of(folder.path()).find("without events of another run"), std::string::npos);
  EXPECT_NO_THROW(check_apart_from_run(folder / "run/events", folder / "run"));
  for (const char* place :
       {"run/release", "run/release/x", "run/private/../private", "run/x/../release/"})
    EXPECT_THROW(check_apart_from_run(folder / place, folder / "run"), InputError) << place;
}

}  // namespace
}  // namespace cudp
