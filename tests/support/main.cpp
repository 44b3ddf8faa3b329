// Runs the tests. A process that left out all its tests ends with the code that CUDP_SKIPPED gives,
// so that ctest reports it as skipped (tests/TestsOfSuites.cmake).
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/support/shared_bounds.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  cudp::share_bounds_of_started_processes();
  const int code = RUN_ALL_TESTS();
  const char* const skipped = std::getenv("CUDP_SKIPPED");
  if (code != 0 || skipped == nullptr || GTEST_FLAG_GET(list_tests)) return code;
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const bool left_out = tests.skipped_test_count() > 0 && tests.successful_test_count() == 0;
  return left_out ? std::atoi(skipped) : 0;
}
