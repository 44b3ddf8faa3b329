// The engines of every test start each example in memory full of NaN, or of what
// CUDP_TEST_SCRATCH says: nan, large, zero or keep (as the program does). scripts/check.sh runs the
// others.
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "runtime/device/scratch_fill.hpp"

namespace cudp {
namespace {

class FillScratch : public testing::Environment {
 public:
  void SetUp() override {
    const char* const chosen = std::getenv("CUDP_TEST_SCRATCH");
    const std::string name = chosen != nullptr ? chosen : "nan";
    if (name == "nan")
      set_scratch_fill(NAN);
    else if (name == "large")
      set_scratch_fill(1e38f);
    else if (name == "zero")
      set_scratch_fill(0.0f);
    else if (name != "keep")
      throw std::runtime_error("CUDP_TEST_SCRATCH: expected nan, large, zero or keep, found " +
                               name);
  }
};

const testing::Environment* const kFillScratch = testing::AddGlobalTestEnvironment(new FillScratch);

}  // namespace
}  // namespace cudp
