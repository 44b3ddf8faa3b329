// Arrays with one element per row that lie in files.
#include "runtime/data/row_array.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "tests/support/data_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Number of files in `folder`, without a name, that this process has mapped.
int mapped_files(const std::string& folder) {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find(folder) != std::string::npos && line.ends_with("(deleted)")) ++found;
  return found;
}

TEST(RowArrays, LieInFilesIfTheyAreLarge) {
  constexpr std::uint32_t kRows = 300'000;
  const TempFolder dir;
  {
    const RowAllocator<std::uint32_t> files{RowMemory(dir.path())};
    RowArray<std::uint32_t> array(files);
    array.push_back(0);
    EXPECT_EQ(mapped_files(dir.path()), 0);
    while (array.size() < kRows) array.push_back(static_cast<std::uint32_t>(array.size()));
    EXPECT_EQ(mapped_files(dir.path()), 1);
    EXPECT_TRUE(fs::is_empty(dir.path()));
    std::vector<std::uint32_t> expected(kRows);
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(array, expected);
    EXPECT_EQ(copy_of(array), expected);
    expected.back() = 1;
    EXPECT_FALSE(array == expected);

    RowArray<std::uint32_t> other;
    other.assign({1, 2, 3});
    const std::uint32_t* const first = array.data();
    other = std::move(array);
    EXPECT_EQ(other.data(), first);
    EXPECT_EQ(mapped_files(dir.path()), 1);
    const RowArray<std::uint32_t> copy = other;
    EXPECT_EQ(mapped_files(dir.path()), 2);
    EXPECT_EQ(copy, other);
  }
  EXPECT_EQ(mapped_files(dir.path()), 0);
}

TEST(RowArrays, AreInMemoryOtherwise) {
  RowArray<float> array(100'000, 0.5f);
  EXPECT_EQ(array, std::vector<float>(100'000, 0.5f));
  EXPECT_FALSE(array.get_allocator().memory().in_file(std::size_t{1} << 30));
}

TEST(RowArrays, RefuseAFolderWithoutSpace) {
  const TempFolder dir;
  RowArray<float> array{RowAllocator<float>(RowMemory(dir.path() + "/none"))};
  EXPECT_THROW(array.resize(100'000), Error);
  RowArray<float> huge{RowAllocator<float>(RowMemory(dir.path()))};
  EXPECT_THROW(huge.reserve(std::size_t{1} << 55), Error);
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

}  // namespace
}  // namespace cudp
