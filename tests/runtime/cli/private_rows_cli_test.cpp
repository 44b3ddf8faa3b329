#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/base/safetensors.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/data_files.hpp"

// No name, flag or file makes private rows public.

namespace fs = std::filesystem;

namespace cudp {
namespace {

class PrivateRowsCli : public testing::Test {
 protected:
  /// Exit code 2, one line that has these words, nothing written.
  void expect_refused(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& words) const {
    const Finished f = run_cudp(folder_, arguments);
    EXPECT_EQ(f.exit, 2) << f.err;
    EXPECT_EQ(f.out, "");
    EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
    for (const std::string& word : words) EXPECT_NE(f.err.find(word), std::string::npos) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run")) << f.err;
  }
  std::vector<std::string> training(std::vector<std::string> more) const {
    more.insert(more.begin(), {"train", "--model", "logistic", "--epsilon", "3", "--delta", "1e-5",
                               "--batch", "8", "--steps", "5", "--threads", "1", "--device", "cpu",
                               "--quiet", "--out", folder_ / "run"});
    return more;
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_);
};

/// Rows that fit the published schema, under the published names.
TEST_F(PrivateRowsCli, UnderAPublishedName) {
  const std::string row =
      "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
      "Male, 2174, 0, 40, United-States, ";
  std::string rows;
  for (int i = 0; i < 300; ++i) rows += row + (i % 3 == 0 ? ">50K\n" : "<=50K\n");
  write_text(folder_ / "adult.data", rows);
  write_text(folder_ / "adult.test", rows);
  expect_refused(training({"--dataset", "adult", "--data-dir", folder_.path()}),
                 {(folder_ / "adult.data") + ": expected the published adult.data of adult",
                  "--dataset " + (folder_ / "adult.data") + " --schema FILE"});
}

TEST_F(PrivateRowsCli, UnderAPublishedNameWithASchemaOfTheirOwn) {
  fs::create_directory(folder_ / "data");
  fs::copy(table_.table, folder_ / "data/adult.data");
  fs::copy(table_.test, folder_ / "data/adult.test");
  fs::copy(table_.table, folder_ / "data/BANK.dat");
  for (const char* name : {"adult", "bank"})
    expect_refused(
        training({"--dataset", name, "--data-dir", folder_ / "data", "--schema", table_.schema}),
        {std::string("--schema: expected none with --dataset ") + name,
         "--dataset FILE --schema FILE"});
}

/// The training file as the test file, by its path and by links; a copy is not looked for.
TEST_F(PrivateRowsCli, AsTestRows) {
  fs::create_symlink(table_.table, folder_ / "symbolic.csv");
  fs::create_hard_link(table_.table, folder_ / "hard.csv");
  fs::copy(table_.table, folder_ / "copy.csv");
  const auto arguments = [&](const std::string& test) {
    return training({"--dataset", table_.table, "--schema", table_.schema, "--test-data", test,
                     "--test-data-is-public"});
  };
  for (const std::string& test :
       {table_.table, folder_ / "./small.csv", folder_ / "symbolic.csv", folder_ / "hard.csv"})
    expect_refused(arguments(test), {": expected test rows in a file of their own, found the file "
                                     "of the training rows, " +
                                     table_.table});
  EXPECT_EQ(run_cudp(folder_, arguments(folder_ / "copy.csv")).exit, 0);
}

/// Labels do not decide how many outputs the released model has.
TEST_F(PrivateRowsCli, ByTheLargestLabelOfAFolder) {
  const auto write = [&](char largest) {
    const std::string labels = std::string(399, '\1') + largest;
    for (const char* part : {"train", "t10k"}) {
      const std::string stem = folder_ / (std::string("images/") + part);
      write_text(stem + "-images-idx3-ubyte", idx_images(400, 2, 2, std::string(1600, 'x')));
      write_text(stem + "-labels-idx1-ubyte", idx_labels(400, labels));
    }
  };
  fs::create_directory(folder_ / "images");
  const auto classes = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--dataset", folder_ / "images"});
    const Finished f = run_cudp(folder_, training(more));
    EXPECT_EQ(f.exit, 0) << f.err;
    const Finished e =
        run_cudp(folder_, {"eval", folder_ / "run", "--dataset", folder_ / "images"});
    EXPECT_EQ(e.exit, 0) << e.err;
    const std::string model = content_of(folder_ / "run/release/model.safetensors");
    fs::remove_all(folder_ / "run");
    return decode_safetensors(model, "model").metadata.at("classes");
  };
  write('\3');
  EXPECT_EQ(classes({}), "10");
  EXPECT_EQ(classes({"--classes", "4"}), "4");
  write('\7');
  EXPECT_EQ(classes({}), "10");
  expect_refused(training({"--dataset", folder_ / "images", "--classes", "4"}),
                 {"-labels-idx1-ubyte, label 399: expected a class of 0 to 3", "--classes N"});
  expect_refused(training({"--dataset", folder_ / "images", "--classes", "1"}),
                 {"--classes: expected a whole number of 2 to 256"});
}

}  // namespace
}  // namespace cudp
