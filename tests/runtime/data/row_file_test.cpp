// Features that stay in a file: what is copied from it, files that were cut short or changed, and
// the files that are made for rows.
#include "runtime/data/row_file.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/examples.hpp"
#include "tests/support/data_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr std::size_t kRowBytes = 48;

/// Bytes of rows: each byte follows from the row's index.
std::vector<std::uint8_t> bytes_of_rows(std::size_t count) {
  std::vector<std::uint8_t> bytes(count * kRowBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(i / kRowBytes * 7 + i % kRowBytes);
  return bytes;
}

class FilesOfRows : public testing::Test {
 protected:
  /// A file of rows behind a header of 16 bytes.
  std::shared_ptr<const RowFile> open(std::size_t rows) {
    const std::vector<std::uint8_t> bytes = bytes_of_rows(rows);
    path_ = dir_.write("rows", std::string(16, 'h') + std::string(bytes.begin(), bytes.end()));
    return open_rows(path_, 16, kRowBytes, rows);
  }
  void cut(std::size_t rows) const { fs::resize_file(path_, 16 + rows * kRowBytes); }

  TempFolder dir_;
  std::string path_;
};

constexpr const char* kCut =
    "DIR/rows: expected the rows that it had when it was opened, found a file that was cut short "
    "or cannot be read";

TEST_F(FilesOfRows, CopyRowsInAnyOrder) {
  const auto file = open(1'000);
  const std::vector<std::uint8_t> all = bytes_of_rows(1'000);
  std::vector<std::uint8_t> some(4 * kRowBytes), range(10 * kRowBytes);
  const std::vector<std::uint32_t> rows = {999, 0, 511, 511};
  file->copy(rows, some.data());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t b = 0; b < kRowBytes; ++b)
      ASSERT_EQ(some[i * kRowBytes + b], all[rows[i] * kRowBytes + b]);
  file->copy(990, 10, range.data());
  EXPECT_TRUE(std::equal(range.begin(), range.end(), all.begin() + 990 * kRowBytes));
  file->copy({}, nullptr);
  const std::vector<std::uint32_t> none = {1'000};
  EXPECT_THROW(file->copy(none, some.data()), Error);
  EXPECT_THROW(file->copy(991, 10, range.data()), Error);
  EXPECT_EQ(refusal_of([&] { open_rows(path_, 16, kRowBytes, 1'001); }, dir_.path()), kCut);
}

/// A page behind the end of a file raises SIGBUS; within the last page there are zeros.
TEST_F(FilesOfRows, RefuseAFileThatWasCutShort) {
  std::vector<std::uint8_t> row(kRowBytes);
  const std::vector<std::uint32_t> first = {0}, last = {9'999};
  for (const std::size_t left : {9'999u, 5'000u, 0u}) {
    SCOPED_TRACE(left);
    const auto file = open(10'000);
    file->copy(last, row.data());
    cut(left);
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(refusal_of([&] { file->copy(last, row.data()); }, dir_.path()), kCut);
      EXPECT_EQ(refusal_of([&] { file->copy(first, row.data()); }, dir_.path()), kCut);
      EXPECT_EQ(refusal_of([&] { file->copy(9'999, 1, row.data()); }, dir_.path()), kCut);
    }
  }
}

/// Other errors of memory still end the program.
TEST_F(FilesOfRows, LeaveOtherSignalsAlone) {
  const auto file = open(10);
  EXPECT_EXIT(::raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FilesOfRows, AreMadeWithoutANameForTheirOwnerAlone) {
  const TempFolder folder;
  RowFileWriter writer(folder.path(), "t.csv", kRowBytes);
  const std::vector<std::uint8_t> rows = bytes_of_rows(300);
  writer.append(std::span(rows).first(100 * kRowBytes));
  writer.append(std::span(rows).subspan(100 * kRowBytes));
  EXPECT_THROW(writer.append(std::span(rows).first(5)), Error);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  bool found = false;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry, gone).string();
    if (target.find(folder.path()) == std::string::npos || !target.ends_with("(deleted)")) continue;
    struct stat about {};
    ASSERT_EQ(::fstat(std::stoi(entry.path().filename()), &about), 0);
    EXPECT_EQ(about.st_mode & 0777u, 0600u);
    found = true;
  }
  EXPECT_TRUE(found);
  const auto file = writer.finish();
  std::vector<std::uint8_t> copy(rows.size());
  file->copy(0, 300, copy.data());
  EXPECT_EQ(copy, rows);
  EXPECT_THROW(RowFileWriter(folder.path() + "/none", "t.csv", kRowBytes), Error);
}

/// Codes and words are indices of weights, so a record that was damaged must not reach a kernel.
TEST_F(FilesOfRows, RefuseCodesAndWordsBeyondTheirRange) {
  Dataset table =
      coded_dataset({.number_feature = {0}, .codes = 1, .features = 4},
                    std::vector<float>{0.5f, 0.25f}, std::vector<std::uint32_t>{1, 4}, {0, 1}, 2);
  Dataset texts;
  texts.shape = {1, 1, 2};
  texts.classes = 2;
  texts.words = 10;
  texts.tokens = {1, 2, 9, 0};
  texts.lengths = {2, 1};
  texts.labels = {0, 1};
  const auto refusal = [&](Dataset data, std::size_t at, char value) {
    const std::size_t bytes = feature_bytes(data);
    RowFileWriter to(dir_.path(), "t", bytes);
    move_features(data, to);
    std::vector<std::uint8_t> rows(2 * bytes);
    to.finish()->copy(0, 2, rows.data());
    rows[at] = static_cast<std::uint8_t>(value);
    const std::string path = dir_.write("rows", std::string(rows.begin(), rows.end()));
    data.rows = open_rows(path, 0, bytes, 2);
    FetchedExamples fetched;
    return refusal_of(
        [&] {
          static_cast<void>(fetched.fetch(data, std::vector<std::uint32_t>{0}));
          static_cast<void>(fetched.fetch(data, std::vector<std::uint32_t>{1, 0}));
        },
        dir_.path());
  };
  const std::string others = "DIR/rows: expected rows as they were written, found others";
  EXPECT_EQ(refusal(table, 8, 4), "");
  EXPECT_EQ(refusal(table, 8, 5), others);
  EXPECT_EQ(refusal(table, 12 + 8, 5), others);
  EXPECT_EQ(refusal(texts, 6, 9), "");
  EXPECT_EQ(refusal(texts, 6, 10), others);
  EXPECT_EQ(refusal(texts, 7, 1), others);
}

TEST(StorageOfRows, FollowsWhatIsRequested) {
  EXPECT_FALSE(RowStorage{}.in_file(std::uint64_t{1} << 60));
  EXPECT_TRUE((RowStorage{.where = RowsIn::file}.in_file(1)));
  EXPECT_FALSE((RowStorage{.where = RowsIn::automatic}.in_file(1)));
  EXPECT_TRUE((RowStorage{.where = RowsIn::automatic}.in_file(std::uint64_t{1} << 60)));
}

}  // namespace
}  // namespace cudp
