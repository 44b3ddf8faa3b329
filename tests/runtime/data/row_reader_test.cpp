// Rows that are read in the background from a file that is larger than memory.
#include "runtime/data/row_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/data_files.hpp"
#include "tests/support/disk_folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

class RowReaders : public testing::TestWithParam<std::size_t> {
 protected:
  /// Makes a file of random rows behind a header of 16 bytes.
  void write(std::size_t rows) {
    std::mt19937_64 random(rows);
    std::string text(16 + rows * row_bytes(), '\0');
    std::ranges::generate(text, [&] { return static_cast<char>(random()); });
    write_text(path(), text);
    all_ = text.substr(16);
    file_ = open_rows(path(), 16, row_bytes(), rows);
    reader_ = RowReader::open(*file_);
  }
  static std::size_t row_bytes() { return GetParam(); }
  static std::uint32_t some_rows() {
    return static_cast<std::uint32_t>(std::min<std::size_t>(20'000, 8'000'000 / row_bytes()));
  }
  fs::path path() const { return folder_.path() / "rows"; }

  std::string rows_of(const std::vector<std::uint32_t>& rows) const {
    std::string text;
    for (const std::uint32_t r : rows) text += all_.substr(r * row_bytes(), row_bytes());
    return text;
  }

  DiskFolder folder_;
  std::string all_;
  std::shared_ptr<const RowFile> file_;
  std::unique_ptr<RowReader> reader_;
};

TEST_P(RowReaders, ReadListsInTheBackground) {
  const std::uint32_t all = some_rows();
  write(all);
  if (reader_ == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  std::mt19937_64 random(1);
  for (const std::size_t one_in : {2u, 50u, 5'000u}) {
    std::vector<std::uint32_t> rows[3];
    std::string read[3];
    RowReader::List lists[3];
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::uint32_t r = 0; r < all; ++r)
        if (random() % one_in == 0) rows[k].push_back(r);
      rows[k].push_back(all - 1);
      rows[k].push_back(all - 1);  // the same row twice
      read[k].resize(rows[k].size() * row_bytes());
      lists[k].rows = rows[k];
      lists[k].to = reinterpret_cast<std::uint8_t*>(read[k].data());
      reader_->start(lists[k]);
    }
    for (const std::size_t k : {2u, 0u, 1u}) {
      reader_->wait(lists[k]);
      EXPECT_TRUE(read[k] == rows_of(rows[k])) << one_in << ", list " << k;
    }
  }
  RowReader::List none;
  reader_->start(none);
  reader_->wait(none);
}

TEST_P(RowReaders, EndWithReadsUnderWay) {
  write(some_rows());
  if (reader_ == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  std::vector<std::uint32_t> rows;
  for (std::uint32_t r = 0; r < some_rows(); r += 3) rows.push_back(r);
  std::string read(rows.size() * row_bytes(), '\0');
  RowReader::List list;
  list.rows = rows;
  list.to = reinterpret_cast<std::uint8_t*>(read.data());
  reader_->start(list);
  reader_ = nullptr;
}

TEST_P(RowReaders, RefuseAFileThatWasCutShort) {
  const std::uint32_t all = some_rows();
  const std::vector<std::uint32_t> first = {0}, last = {0, all - 1};
  std::string read(2 * row_bytes(), '\0');
  for (const std::size_t left : {all - 1, all / 2, 0u}) {
    SCOPED_TRACE(left);
    write(all);
    if (reader_ == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
    fs::resize_file(path(), 16 + left * row_bytes());
    for (const auto& rows : {first, last}) {
      RowReader::List list;
      list.rows = rows;
      list.to = reinterpret_cast<std::uint8_t*>(read.data());
      reader_->start(list);
      EXPECT_EQ(refusal_of([&] { reader_->wait(list); }, folder_.path()),
                "DIR/rows: expected the rows that it had when it was opened, found a file that was "
                "cut short or cannot be read");
    }
  }
  const std::vector<std::uint32_t> none = {all};
  RowReader::List list;
  list.rows = none;
  EXPECT_THROW(reader_->start(list), Error);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RowReaders, testing::Values(1, 52, 784, 4'096, 5'001));

}  // namespace
}  // namespace cudp
