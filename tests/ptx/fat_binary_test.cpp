#include "tests/support/ptx/fat_binary.hpp"

#include <gtest/gtest.h>

#include "tests/ptx/fat_binaries.hpp"

namespace cudp::ptx {
namespace {

const std::string kText = ".version 9.0\n.target sm_80\n" + std::string(300, ' ') + "// end\n";

TEST(FatBinary, HasItsPtxPackedOrNot) {
  for (const Packing packing : {Packing::none, Packing::zstd}) {
    const auto binary = fat_binary({{kText, 80, packing}});
    EXPECT_EQ(ptx_of_fat_binary(binary.data()), kText);
  }
}

TEST(FatBinary, TheNewestPtxIsTakenAndNoMachineCode) {
  const auto binary = fat_binary({{"cubin", 120, Packing::none, 2},
                                  {"old", 80, Packing::none},
                                  {"new", 100, Packing::zstd},
                                  {"between", 90, Packing::none},
                                  {"cubin", 121, Packing::none, 2}});
  EXPECT_EQ(ptx_of_fat_binary(binary.data()), "new");
  const auto none = fat_binary({{"cubin", 80, Packing::none, 2}});
  EXPECT_THROW(ptx_of_fat_binary(none.data()), Fault);
}

// What lz4(1) makes of "abcabcabcabcabcabcX12345": three literals, a match of 15 that overlaps
// itself, and the rest as literals.
const std::string kPacked = std::string(
    "\x3b"
    "abc\x03\x00\x60"
    "X12345",
    13);

TEST(FatBinary, ReadsLz4) {
  const std::string whole = "abcabcabcabcabcabcX12345";
  const auto binary = fat_binary({{kPacked, 80, Packing::lz4}}, whole.size());
  EXPECT_EQ(ptx_of_fat_binary(binary.data()), whole);
  // More than 15 of both: the lengths go on in bytes of their own.
  const std::string many = std::string("\xff\x05", 2) + "0123456789abcdefghij" +
                           std::string("\x14\x00\xff\x01", 4) + std::string("\x10z", 2);
  std::string expected = "0123456789abcdefghij";
  while (expected.size() < 20 + 15 + 255 + 1 + 4)
    expected.push_back(expected[expected.size() - 20]);
  expected += 'z';
  EXPECT_EQ(
      decompress_lz4({reinterpret_cast<const u8*>(many.data()), many.size()}, expected.size()),
      expected);
}

TEST(FatBinary, RefusesWhatIsDamaged) {
  const auto good = fat_binary({{kText, 80, Packing::zstd}});
  for (const std::size_t at : {std::size_t{0}, std::size_t{16 + 8}, std::size_t{16 + 64}}) {
    auto bad = good;
    bad[at] ^= 0x40;
    if (at == 24) bad[at + 4] = 1;  // a payload of 4 GB
    EXPECT_THROW(ptx_of_fat_binary(bad.data()), Fault) << at;
  }
  const auto lz4 = [](const std::string& s, std::size_t size) {
    return decompress_lz4({reinterpret_cast<const u8*>(s.data()), s.size()}, size);
  };
  EXPECT_EQ(lz4(kPacked, 24).size(), 24u);
  EXPECT_THROW(lz4(kPacked, 23), Fault);
  EXPECT_THROW(lz4(kPacked, 25), Fault);
  EXPECT_THROW(lz4(kPacked.substr(0, 5), 24), Fault);
  std::string back = kPacked;
  back[4] = 4;  // before the first byte
  EXPECT_THROW(lz4(back, 24), Fault);
}

}  // namespace
}  // namespace cudp::ptx
