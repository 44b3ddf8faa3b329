// Trainings on an emulated CUDA device whose rows have targets, units or class weights, or are held
// out: the weights are the CPU's but for rounding, and the certificates are equal.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/safetensors.hpp"
#include "runtime/data/holdout.hpp"
#include "runtime/device/backend.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

class CudaRows : public testing::Test {
 protected:
  Ended run(const std::string& command, const std::string& options) const {
    Arguments words;
    std::istringstream all(
        command +
        " --delta 1e-5 --seed 3 --epsilon 8 --threads 1 --micro-batch 64 --accountant rdp " +
        options);
    for (std::string word; all >> word;) words.push_back(word);
    std::fflush(stdout);  // the new process has a copy of what is not written yet
    Ended ended = run_observed(folder_.path(), words, [] {
      replace_cuda(&emulated_cuda(), true);
      return nullptr;
    });
    EXPECT_EQ(ended.exit, 0) << ended.err;
    return ended;
  }
  /// Trains into the folder `out` of the test's folder.
  void train(const std::string& device, const std::string& out, const std::string& options) const {
    run("train --device " + device + " --out " + out, options);
  }

  std::vector<float> weights_of(const std::string& run) const {
    return decode_safetensors(content_of(folder_ / (run + "/release/model.safetensors")), "model")
        .values;
  }

  void expect_cuda_trains_as_the_cpu(const std::string& options) const {
    SCOPED_TRACE(options);
    static int runs = 0;
    const std::string cuda = fmt::format("cuda{}", runs), cpu = fmt::format("cpu{}", runs++);
    train("cuda", cuda, options);
    train("cpu", cpu, options);
    const std::vector<float> got = weights_of(cuda), want = weights_of(cpu);
    ASSERT_EQ(got.size(), want.size());
    const auto [error, size] = cases::distance(got.data(), want.data(), want.size());
    EXPECT_TRUE(size > 0 && error <= 1e-5 * size) << error << " of " << size;
    const auto stated = [&](const std::string& run) {
      const auto json =
          nlohmann::json::parse(content_of(folder_ / (run + "/release/privacy.json")));
      return std::vector{json.at("epsilon"), json.at("unit")};
    };
    EXPECT_EQ(stated(cuda), stated(cpu));
  }

  /// Writes 900 rows of 400 persons and a schema. last: the last column's kind and range.
  void write_table(const std::string& name, const std::string& last, bool is_class) const {
    std::string rows = "who,age,hours,last\n";
    for (int i = 0; i < 900; ++i)
      rows += fmt::format("p{},{},{},{}\n", i * 7 % 400, 17 + i * 13 % 74, i * 5 % 41,
                          is_class ? i % 9 == 0 : i * 11 % 40);
    write_text(folder_ / name, rows);
    write_text(folder_ / (name + ".schema.toml"), R"(name = "stays"
unit = "who"
max_rows = 2
columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = "last", )" + last + "},\n]\n");
  }

  TemporaryFolder folder_;
};

constexpr const char* kHeldOut = " --holdout 0.25 --holdout-epsilon 1 --holdout-delta 1e-6";

TEST_F(CudaRows, UnitsAndTargetsOfHeldOutRows) {
  write_table("stays.csv", "kind = \"target\", min = 0, max = 40", false);
  for (const std::string loss : {"squared", "huber"})
    expect_cuda_trains_as_the_cpu(
        "--dataset stays.csv --model linear --lr 0.5 --batch 60 --steps 2 --loss " + loss +
        kHeldOut);
}

TEST_F(CudaRows, UnitsAndClassWeightsOfHeldOutRows) {
  write_table("visits.csv", "kind = \"label\", values = [\"0\", \"1\"]", true);
  for (const std::string method : {"dpsgd --clipping automatic", "dpis"})
    expect_cuda_trains_as_the_cpu(
        "--dataset visits.csv --model logistic --class-weights 1,8 --steps 2 --batch 60 --method " +
        method + kHeldOut);
}

/// The coin of a row, not its content, decides whether it is held out, and the model is then the
/// same whatever the row has.
TEST_F(CudaRows, AHeldOutRowThatOverflowsChangesNoWeight) {
  constexpr std::size_t kRows = 300, kWidth = 4;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t k = 0; k < kWidth; ++k) x.push_back(normal(random));
    y.push_back(x[i * kWidth] > 0 ? 1 : 0);
  }
  write_text(folder_ / "y.npy", npy_labels(y));
  HoldOutDraws draws(SharedKey(split_key_of_seed(3)), 0.25);
  constexpr float kHostile[] = {3e38f, -3e38f, 1e-40f};  // other rows are refused
  std::size_t held = 0;
  std::vector<float> hostile = x;
  for (std::size_t i = 0; i < kRows; ++i)
    if (draws.holds_out(i))
      hostile[i * kWidth + held % kWidth] = kHostile[held / kWidth % 3], ++held;
  EXPECT_GT(held, 40u);
  for (const std::string model : {"mlp"}) {
    std::vector<std::vector<float>> weights;
    for (const auto* const rows : {&x, &hostile}) {
      write_text(folder_ / "x.npy", npy_floats(kRows, *rows));
      const std::string out = fmt::format("{}{}", model, weights.size());
      train("cuda", out,
            "--dataset x.npy --labels y.npy --classes 2 --steps 3 --batch 60 --model " + model +
                kHeldOut);
      weights.push_back(weights_of(out));
    }
    EXPECT_EQ(weights[1], weights[0]);
  }
}

/// Rows that stay in a file on the host, and those of the evaluation too, give the same model.
TEST_F(CudaRows, RowsInAFileGiveTheModelOfRowsInMemory) {
  write_table("visits.csv", "kind = \"label\", values = [\"0\", \"1\"]", true);
  for (const std::string method : {"dpsgd", "dpis"}) {
    for (const std::string where : {"memory", "file"})
      train("cuda", method + where,
            fmt::format("--dataset visits.csv --model logistic --steps 2 --batch 60 --method {} "
                        "--rows-in {}{}",
                        method, where, kHeldOut));
    EXPECT_EQ(weights_of(method + "file"), weights_of(method + "memory"));
    EXPECT_EQ(content_of(folder_ / (method + "file/private/metrics.jsonl")),
              content_of(folder_ / (method + "memory/private/metrics.jsonl")));
  }
}

/// An audit on the device has the CPU's batches and noise and so, with canaries far beyond the
/// clipping norm, the same guesses.
TEST_F(CudaRows, AnAuditMakesTheGuessesOfTheCpu) {
  write_table("visits.csv", "kind = \"label\", values = [\"0\", \"1\"]", true);
  write_text(
      folder_ / "small.toml",
      "name = \"small\"\nlayers = [\n  { type = \"dense\", name = \"a\", out = 8 },\n"
      "  { type = \"tanh\" },\n  { type = \"dense\", name = \"b\", out = \"outputs\" },\n]\n");
  for (const std::string canary : {"gradient", "example"}) {
    const auto audited = [&](const std::string& device) {
      const Ended ended = run("audit --device " + device,
                              "--dataset visits.csv --model small.toml --steps 2 --batch 60 --json "
                              "--canaries 20 --canary " +
                                  canary);
      EXPECT_EQ(ended.err.find("device: "), std::string::npos) << ended.err;
      auto json = nlohmann::json::parse(ended.out);
      json.erase("seconds");
      return json;
    };
    const auto cuda = audited("cuda"), cpu = audited("cpu");
    if (canary == "gradient") {
      EXPECT_EQ(audited("auto"), cuda);
    }
    EXPECT_GT(cuda.at("guesses"), 0);
    EXPECT_EQ(cuda.at("guesses"), cpu.at("guesses"));
    EXPECT_EQ(cuda.at("correct"), cpu.at("correct"));
  }
}

}  // namespace
}  // namespace cudp
