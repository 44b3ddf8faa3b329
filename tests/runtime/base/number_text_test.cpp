#include "runtime/base/number_text.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace cudp {
namespace {

TEST(NumberText, IsTheShortestThatReadsBack) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(0.1f), "0.1");
  EXPECT_EQ(number_text(std::uint64_t{18446744073709551615u}), "18446744073709551615");
  for (const double x : {-1.0 / 3.0, 5e-324, std::numeric_limits<double>::max()})
    EXPECT_EQ(read_number<double>(number_text(x)), x);
}

TEST(NumberText, ReadsNothingButAWholeText) {
  EXPECT_EQ(read_number<int>("-12"), -12);
  EXPECT_EQ(read_number<double>("1e3"), 1000.0);
  for (const char* text : {"", " 1", "1 ", "1x", "x", "+1", "0x10"})
    EXPECT_EQ(read_number<double>(text), std::nullopt) << text;
  EXPECT_EQ(read_number<double>("1e999"), std::nullopt);
  EXPECT_EQ(read_number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(read_number<int>("2147483648"), std::nullopt);
  EXPECT_EQ(read_number<int>("1.5"), std::nullopt);
}

}  // namespace
}  // namespace cudp
