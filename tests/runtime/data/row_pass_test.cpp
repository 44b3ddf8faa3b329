// Rows of many lists that one pass over a file copies to another file.
#include "runtime/data/row_pass.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/data/row_reader.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/disk_folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using RowLists = std::vector<std::vector<std::uint32_t>>;

class RowPasses : public testing::TestWithParam<std::size_t> {
 protected:
  /// Makes a file of random rows behind a header of 16 bytes.
  void write(std::size_t rows) {
    std::mt19937_64 random(rows);
    std::string text(16 + rows * row_bytes(), '\0');
    std::ranges::generate(text, [&] { return static_cast<char>(random()); });
    write_text(path(), text);
    all_ = text.substr(16);
    file_ = open_rows(path(), 16, row_bytes(), rows, folder_.path());
  }
  static std::size_t row_bytes() { return GetParam(); }
  static std::uint32_t some_rows() {
    return static_cast<std::uint32_t>(std::min<std::size_t>(40'000, 20'000'000 / row_bytes()));
  }
  fs::path path() const { return folder_.path() / "rows"; }
  bool is_supported() const { return RowReader::open(*file_) != nullptr; }

  static RowLists lists_of(std::uint32_t rows, std::initializer_list<unsigned> one_in) {
    std::mt19937_64 random(1);
    RowLists lists;
    for (const unsigned n : one_in) {
      lists.emplace_back();
      for (std::uint32_t r = 0; r < rows; ++r)
        if (random() % n == 0) lists.back().push_back(r);
    }
    return lists;
  }
  bool copy(const RowLists& lists, std::size_t slot, std::size_t chunk,
            const RowUse* use = nullptr) {
    to_ = make_empty_rows(folder_.path(), "rows", row_bytes(), lists.size() * slot);
    ThreadTeam team(3);
    return copy_in_one_pass({.from = *file_,
                             .lists = lists,
                             .to = *to_,
                             .slot_rows = slot,
                             .chunk_bytes = chunk,
                             .use = use,
                             .team = &team},
                            stop_);
  }
  /// Returns the rows of list number k of the last copy.
  std::string copied(std::size_t k, std::size_t slot, std::size_t count) const {
    std::string rows(count * row_bytes(), '\0');
    to_->copy(k * slot, count, reinterpret_cast<std::uint8_t*>(rows.data()));
    return rows;
  }
  std::string rows_of(const std::vector<std::uint32_t>& list) const {
    std::string rows;
    for (const std::uint32_t r : list) rows += all_.substr(r * row_bytes(), row_bytes());
    return rows;
  }

  DiskFolder folder_;
  std::string all_;
  std::shared_ptr<const RowFile> file_;
  std::shared_ptr<const RowFile> to_;
  std::atomic<bool> stop_ = false;
};

TEST_P(RowPasses, CopyEachListToItsSlot) {
  const std::uint32_t all = some_rows();
  write(all);
  if (!is_supported()) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  RowLists lists = lists_of(all, {3, 50, 700, 1'000'000'000, 9, 2});
  lists[1].push_back(all - 1);
  lists[1].push_back(all - 1);  // the same row twice
  const std::size_t slot = RowPass::slot_of(all / 2, row_bytes());
  EXPECT_EQ(slot * row_bytes() % RowPass::kDirectPage, 0u);
  EXPECT_GE(slot, all / 2);
  lists[5].resize(slot + 1);  // more than its slot: not copied, nor written over others
  lists.push_back({0, all / 2, all - 1});
  for (const std::size_t chunk : {std::size_t{4096}, std::size_t{1} << 16}) {
    ASSERT_TRUE(copy(lists, slot, chunk));
    for (std::size_t k = 0; k < lists.size(); ++k) {
      if (k == 5) continue;
      EXPECT_TRUE(copied(k, slot, lists[k].size()) == rows_of(lists[k])) << k;
    }
  }
  EXPECT_TRUE(copy({{}, {}}, slot, 4096));
}

TEST_P(RowPasses, HandOverAllRowsMeanwhile) {
  const std::uint32_t all = some_rows();
  write(all);
  if (!is_supported()) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  const RowLists lists = lists_of(all, {3, 50, 700});
  const std::size_t slot = RowPass::slot_of(all, row_bytes());
  for (const std::size_t multiple : {std::size_t{1}, std::size_t{16}, std::size_t{1} << 21}) {
    SCOPED_TRACE(multiple);
    std::string seen(all_.size(), '\0');
    std::atomic<std::size_t> rows = 0;
    std::atomic<bool> right = true;
    const RowUse use{.use =
                         [&](std::size_t at, std::span<const std::uint8_t> part) {
                           if (at % multiple != 0 || part.size() % row_bytes() != 0) right = false;
                           rows += part.size() / row_bytes();
                           std::ranges::copy(part, reinterpret_cast<std::uint8_t*>(seen.data()) +
                                                       at * row_bytes());
                         },
                     .multiple = multiple};
    // So many rows are more than a block.
    const bool fits = multiple < std::size_t{1} << 21;
    ASSERT_EQ(copy(lists, slot, 4096, &use), fits);
    EXPECT_EQ(rows, fits ? all : 0);
    if (!fits) continue;
    EXPECT_TRUE(right);
    EXPECT_TRUE(seen == all_);
    for (std::size_t k = 0; k < lists.size(); ++k)
      EXPECT_TRUE(copied(k, slot, lists[k].size()) == rows_of(lists[k])) << k;
  }
}

TEST_P(RowPasses, FailIfTheFileWasCutShortOrTheyAreStopped) {
  const std::uint32_t all = some_rows();
  write(all);
  if (!is_supported()) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  const RowLists lists = lists_of(all, {30, 50});
  const std::size_t slot = RowPass::slot_of(all, row_bytes());
  stop_ = true;
  EXPECT_FALSE(copy(lists, slot, 4096));
  stop_ = false;
  for (const std::size_t left : {all - 1, all / 2, 0u}) {
    write(all);
    fs::resize_file(path(), 16 + left * row_bytes());
    EXPECT_FALSE(copy(lists, slot, 4096)) << left;
  }
}

TEST_P(RowPasses, FailIfTheFileIsCutShortWhileTheyHandRowsOver) {
  const std::uint32_t all = some_rows();
  write(all);
  if (!is_supported()) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  const RowLists lists = lists_of(all, {30, 50});
  std::atomic<std::size_t> rows = 0;
  const RowUse use{.use = [&](std::size_t, std::span<const std::uint8_t> part) {
    rows += part.size() / row_bytes();
    fs::resize_file(path(), 16 + (all - 1) * row_bytes());
  }};
  EXPECT_FALSE(copy(lists, RowPass::slot_of(all, row_bytes()), 4096, &use));
  EXPECT_GT(rows, 0u);
}

INSTANTIATE_TEST_SUITE_P(Sizes, RowPasses, testing::Values(1, 52, 784, 4'096, 5'001));

TEST(EmptyRows, AreNotMadeIfTheDiskHasNoSpace) {
  const DiskFolder folder;
  EXPECT_EQ(make_empty_rows(folder.path(), "rows", std::size_t{1} << 20, std::size_t{1} << 30),
            nullptr);
}

}  // namespace
}  // namespace cudp
