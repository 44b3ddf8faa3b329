#include "runtime/results/event_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/protobuf.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Returns the CRC-32C (Castagnoli) of some bytes.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

/// Returns the checksum that a TFRecord stores for its length or its data: a CRC-32C that is
/// rotated and added to a constant ("masked"), because the data may contain checksums.
std::string masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little_endian((crc >> 15 | crc << 17) + 0xa282ead8U, 4);
}

/// Returns a message as a TFRecord: length, checksum of the length, bytes, checksum of the bytes.
std::string record_of(const ProtoMessage& event) {
  const std::string length = little_endian(event.bytes().size(), 8);
  return length + masked_crc(length) + event.bytes() + masked_crc(event.bytes());
}

// Numbers of fields in event.proto and summary.proto.
constexpr int kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimple = 2;

/// Adds the number under the name `tag` to a TensorBoard summary, unless it is NaN or infinite.
void add_value(ProtoMessage& summary, std::string_view tag, double number) {
  if (!std::isfinite(number)) return;
  ProtoMessage value;
  value.text(kValueTag, tag);
  value.real(kValueSimple, static_cast<float>(number));
  summary.message(kSummaryValue, value);
}

std::string event_of(const MetricsRow& row) {
  ProtoMessage summary;
  add_value(summary, "epoch", row.epoch);
  add_value(summary, "epsilon", row.epsilon);
  if (row.training_epsilon) add_value(summary, "training_epsilon", *row.training_epsilon);
  add_value(summary, "learning_rate", row.learning_rate);
  for (std::size_t i = 0; i < row.test.values.size(); ++i)
    add_value(summary, metrics(row.test.kind)[i].key, row.test.values[i]);
  ProtoMessage event;
  event.integer(kEventStep, static_cast<std::int64_t>(row.step));
  event.message(kEventSummary, summary);
  return record_of(event);
}

/// Returns whether the path begins with the scheme of a URL, such as s3://.
bool has_scheme(const std::string& path) {
  const std::size_t end = path.find("://");
  return end != std::string::npos && end > 0 && path.find('/') > end;
}

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
  throw InputError("--tensorboard: expected " + expected + ", found " + found);
}

}  // namespace

std::string encode_events(const std::vector<MetricsRow>& rows) {
  ProtoMessage version;
  version.text(kEventFileVersion, "brain.Event:2");
  std::string bytes = record_of(version);
  for (const MetricsRow& row : rows) bytes += event_of(row);
  return bytes;
}

EventFile::EventFile(const fs::path& folder, const std::vector<MetricsRow>& rows)
    : path_(folder / kName) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) refuse("a folder that can be made", folder.string() + ": " + failed.message());
  if (fs::exists(path_, failed)) {
    written_ = read_file(path_);
    const std::string known = encode_events(rows);
    const bool same_run =
        known.starts_with(written_) || (!rows.empty() && written_.starts_with(known));
    if (!same_run)
      refuse("the events of this run, or none",
             path_.string() + " with others; give another folder");
  }
  write(rows);
}

void EventFile::write(const std::vector<MetricsRow>& rows) {
  const std::string bytes = encode_events(rows);
  // New bytes are appended, because TensorBoard resumes reading at its last position. The file is
  // rewritten only if a resumed run has fewer rows than the file, or rows that differ.
  const bool longer = bytes.starts_with(written_);
  std::ofstream file(path_, std::ios::binary | (longer ? std::ios::app : std::ios::trunc));
  file << (longer ? bytes.substr(written_.size()) : bytes);
  file.close();
  if (!file) throw Error(path_.string() + ": cannot write it: " + std::strerror(errno));
  written_ = bytes;
}

void check_events_folder(const std::string& folder) {
  if (has_scheme(folder))
    refuse("a folder of this machine",
           folder + "; mount the storage, or copy the folder there afterwards");
  std::error_code error;
  if (fs::exists(fs::path(folder) / EventFile::kName, error))
    refuse("a folder without events of another run", folder + " with some");
  // `existing`: the folder or, if it does not exist yet, its nearest parent that exists, in which
  // it will be created.
  fs::path existing = fs::absolute(folder).lexically_normal();
  while (!fs::exists(existing, error) && existing.has_relative_path())
    existing = existing.parent_path();
  if (!fs::is_directory(existing, error)) refuse("a folder", existing.string());
  if (::access(existing.c_str(), W_OK | X_OK) != 0)
    refuse("a folder that can be made", folder + ": " + std::strerror(errno));
}

void check_apart_from_run(const std::string& folder, const fs::path& root) {
  const auto canonical = [](const fs::path& path) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(path), ignored).lexically_normal();
  };
  const fs::path place = canonical(folder) / "";
  for (const char* part : {"release", "private"}) {
    const fs::path kept = canonical(root / part);
    if (std::mismatch(kept.begin(), kept.end(), place.begin(), place.end()).first == kept.end())
      refuse(std::string("a folder outside ") + part + "/ of the run", folder);
  }
}

}  // namespace cudp
