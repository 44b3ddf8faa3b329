#pragma once
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/test_files.hpp"

namespace cudp {

/// golden/accounting.json, where it lies beside the project.
class GoldenAccounting : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path file = shared_file("golden/accounting.json");
    std::ifstream stream(file);
    if (!stream) GTEST_SKIP() << "no golden values: " << file;
    golden = nlohmann::json::parse(stream);
  }

  nlohmann::json golden;
};

}  // namespace cudp
