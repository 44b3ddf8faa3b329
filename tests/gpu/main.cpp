// The tests that need a device. Without one none is run, and it says how many were skipped; their
// names are listed all the same.
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "runtime/device/cuda/devices.hpp"
#include "tests/gpu/training.hpp"

int main(int argc, char** argv) {
  if (cudp::is_as_cudp(argc, argv)) return cudp::main_as_cudp(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  // With dependent launches (kernels/common/dependent.cuh), if the variable is not set.
  (void)setenv("CUDP_DEPENDENT_LAUNCHES", "1", 0);
  if (!GTEST_FLAG_GET(list_tests) && cudp::cuda_devices().empty()) {
    std::cout << "no CUDA device: " << testing::UnitTest::GetInstance()->total_test_count()
              << " tests skipped\n";
    return 0;
  }
  return RUN_ALL_TESTS();
}
