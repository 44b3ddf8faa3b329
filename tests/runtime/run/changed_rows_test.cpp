// Files of rows that another program changes or cuts short while a run starts or is resumed, on the
// CPU and on an emulated CUDA device. The same noise is never added to a sum over other rows: a
// resume is refused unless its rows are those of the steps that were released.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/data/row_file.hpp"
#include "runtime/data/row_pass.hpp"
#include "runtime/data/row_reader.hpp"
#include "runtime/device/backend.hpp"
#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/disk_folder.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/forwarding_engine.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/small_data.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// What another program does to the file of rows, and when. Empty functions are not called.
struct Disturbance {
  std::function<void()> after_load = {};  ///< after the engine has loaded the training set
  std::function<void()> in_pass = {};     ///< when the first pass hands over its first rows
  std::function<void()> after_pass = {};  ///< after this pass
};

/// Engine whose rows are disturbed. It treats their file as one that is larger than memory.
class DisturbedEngine : public ForwardingEngine {
 public:
  DisturbedEngine(std::unique_ptr<Engine> real, const Disturbance& disturbance)
      : ForwardingEngine(std::move(real)), disturbance_(disturbance) {}

  void load(const Dataset& train) override {
    const_cast<RowFile&>(*train.rows).let_exceed_memory();
    ForwardingEngine::load(train);
    if (disturbance_.after_load) disturbance_.after_load();
  }
  bool read_all_rows(std::uint64_t step, const Draw& draw, const RowUse& use) override {
    std::once_flag is_disturbed;
    const auto hand_over = [&](std::size_t first, std::span<const std::uint8_t> rows) {
      if (disturbance_.in_pass) std::call_once(is_disturbed, disturbance_.in_pass);
      use.use(first, rows);
    };
    const bool all =
        ForwardingEngine::read_all_rows(step, draw, {.use = hand_over, .multiple = use.multiple});
    if (disturbance_.after_pass) disturbance_.after_pass();
    return all;
  }

 private:
  const Disturbance& disturbance_;
};

/// Returns the CPU's backend or that of an emulated CUDA device, with disturbed engines.
Backend disturbed(const std::string& device, const Disturbance& disturbance) {
  Backend backend = device == "cpu" ? choose_backend(Device::cpu) : emulated_cuda();
  backend.make_engine = [make = backend.make_engine, &disturbance](const Network& network,
                                                                   const EngineSettings& settings) {
    return std::make_unique<DisturbedEngine>(make(network, settings), disturbance);
  };
  return backend;
}

class RowsOfARun : public testing::Test {
 protected:
  explicit RowsOfARun(std::string device) : device_(std::move(device)) {}

  void write_images(std::size_t count) {
    std::mt19937_64 random(4);
    const auto images = [&](const std::string& part, std::size_t n) {
      std::string labels(n, '\0'), block(std::size_t{784} * 100, '\0'), pixels;
      std::ranges::generate(labels, [&] { return static_cast<char>(random() % 10); });
      std::ranges::generate(block, [&] { return static_cast<char>(random()); });
      while (pixels.size() < 784 * n) pixels += block;
      small_data::write_grey_images(folder_.path() / "images", part, pixels.substr(0, 784 * n),
                                    labels);
    };
    images("train", count);
    images("t10k", 50);
    first_ = content_of(file());
    second_ = first_;
    for (std::size_t at = 16; at < second_.size(); ++at)
      second_[at] = static_cast<char>(second_[at] ^ 1);
  }

  fs::path file() const { return folder_.path() / "images" / "train-images-idx3-ubyte"; }
  /// Writes the file in place: programs that have opened it see the new rows.
  void write(const std::string& content) const {
    std::fstream out(file(), std::ios::binary | std::ios::in | std::ios::out);
    out << content;
    out.close();
    fs::resize_file(file(), content.size());
  }

  /// Runs `cudp WORDS`. The process is killed when its step number `killed_at` is released (0: not
  /// at all).
  Ended run(const Arguments& words, const Disturbance& disturbance, std::size_t killed_at) const {
    std::fflush(stdout);  // the new process has a copy of what is not written yet
    const Backend backend = disturbed(device_, disturbance);
    return run_observed(folder_.path(), words, [&] {
      replace_cuda(&backend);
      return new RecordingObserver(released(), {SIGKILL, killed_at});
    });
  }
  Ended start(const std::string& out, const Disturbance& disturbance = {},
              std::size_t killed_at = 0) const {
    return run(args("train --dataset images --model logistic --rows-in file --epsilon 3 --delta "
                    "1e-5 --size-is-public --seed 3 --batch 40 --steps 12 --threads 2 --quiet "
                    "--micro-batch 64 --checkpoint-every 0 --device " +
                    device_ + " --out " + out),
               disturbance, killed_at);
  }
  /// Starts a run in the folder `run` that is killed after three steps.
  void start_some_steps(const Disturbance& disturbance = {}) const {
    const Ended killed = start("run", disturbance, 3);
    ASSERT_EQ(killed.exit, -SIGKILL) << killed.err;
  }
  Ended resume(const Disturbance& disturbance) const {
    return run(args("train --resume run --quiet"), disturbance, 0);
  }

  fs::path released() const { return folder_.path() / "released"; }
  fs::path model_of(const std::string& run) const {
    return folder_.path() / run / "release" / "model.safetensors";
  }
  /// Returns the contents of all files of the folder `run` except the log, and of the record of
  /// released values.
  std::map<std::string, std::string> kept() const {
    std::map<std::string, std::string> files = {{released(), content_of(released())}};
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "run"))
      if (entry.is_regular_file() && entry.path().filename() != "log.txt")
        files[entry.path()] = content_of(entry.path());
    return files;
  }

  /// Expects that the run is not resumed, by one line that contains `reason`, and that nothing is
  /// released or written.
  void expect_refused(const std::string& reason, const Disturbance& disturbance = {}) const {
    const auto before = kept();
    const Ended refused = resume(disturbance);
    EXPECT_EQ(refused.exit, 2) << refused.err;
    EXPECT_EQ(lines_of(refused.err).size(), 1u) << refused.err;
    EXPECT_NE(refused.err.find(reason), std::string::npos) << refused.err;
    EXPECT_TRUE(kept() == before);
    EXPECT_FALSE(fs::exists(model_of("run")));
  }
  /// Expects that the run is resumed, and ends with the model of a run that had the file's present
  /// rows from its first step on.
  void expect_resumes(const Disturbance& disturbance = {}) const {
    const Ended resumed = resume(disturbance);
    ASSERT_EQ(resumed.exit, 0) << resumed.err;
    const Ended whole = start("whole");
    ASSERT_EQ(whole.exit, 0) << whole.err;
    EXPECT_TRUE(content_of(model_of("run")) == content_of(model_of("whole")));
  }
  /// Starts a run during which the file becomes the second one. Expects that the run is resumed
  /// with the rows `had` only, and not with the rows `others`.
  void expect_steps_had(const std::string& had, const std::string& others,
                        const Disturbance& disturbance) const {
    start_some_steps(disturbance);
    ASSERT_TRUE(content_of(file()) == second_);
    write(others);
    expect_refused(kOtherRows);
    write(had);
    expect_resumes();
  }

  static constexpr const char* kOtherRows =
      "expected the training data that the run began with, found other data";

  std::string device_;
  DiskFolder folder_;
  std::string first_, second_;  ///< contents of the file; each row differs
};

class RowsThatChange : public RowsOfARun, public testing::WithParamInterface<std::string> {
 protected:
  RowsThatChange() : RowsOfARun(GetParam()) { write_images(400); }
};

INSTANTIATE_TEST_SUITE_P(Devices, RowsThatChange, testing::Values("cpu", "cuda"),
                         [](const auto& info) { return info.param; });

TEST_P(RowsThatChange, BetweenStartAndResumeAreRefused) {
  start_some_steps();
  write(second_);
  expect_refused(kOtherRows);
  write(first_);
  expect_resumes();
}

/// The rows were compared before the engine loaded them, and were right.
TEST_P(RowsThatChange, WhileARunIsResumedAreRefused) {
  start_some_steps();
  expect_refused(
      "expected rows that stay as they are, found that they changed while the run was resumed",
      {.after_load = [this] { write(second_); }});
  write(first_);
  expect_resumes();
}

/// A CUDA engine copies the rows to the device when it loads them, and its steps have the first
/// rows. Steps on the CPU read the file later.
TEST_P(RowsThatChange, AfterTheyAreLoadedAreThoseOfTheCodeOnTheCpuOnly) {
  const bool cpu = GetParam() == "cpu";
  expect_steps_had(cpu ? second_ : first_, cpu ? first_ : second_,
                   {.after_load = [this] { write(second_); }});
}

/// A run on the CPU whose rows are read in a pass before the first step.
class RowsOfAPass : public RowsOfARun {
 protected:
  RowsOfAPass() : RowsOfARun("cpu") { write_images(20'000); }  // more than are read at a time

  bool has_passes() const { return RowReader::open(*open_rows(file(), 16, 784, 1)) != nullptr; }
  std::function<void()> cuts_short() const {
    return [this] { fs::resize_file(file(), 8'000'000); };
  }

  static constexpr const char* kNoPasses = "/var/tmp cannot be read in the background";
  static constexpr const char* kCutShort =
      "images/train-images-idx3-ubyte: expected the rows that it had when it was opened, found a "
      "file that was cut short or cannot be read";
};

TEST_F(RowsOfAPass, HaveTheCodeOfItsCopies) {
  if (!has_passes()) GTEST_SKIP() << kNoPasses;
  expect_steps_had(first_, second_, {.after_pass = [this] { write(second_); }});
}

TEST_F(RowsOfAPass, EndAStartInOneLineIfTheyAreCutShort) {
  if (!has_passes()) GTEST_SKIP() << kNoPasses;
  const Ended ended = start("run", {.in_pass = cuts_short()});
  EXPECT_EQ(ended.exit, 2);
  EXPECT_EQ(lines_of(ended.err).size(), 1u) << ended.err;
  EXPECT_NE(ended.err.find(kCutShort), std::string::npos) << ended.err;
  EXPECT_LT(fs::file_size(file()), first_.size());
  EXPECT_EQ(content_of(released()), "");
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().filename().string().find("run"), std::string::npos) << entry.path();
}

TEST_F(RowsOfAPass, EndAResumeInOneLineIfTheyAreCutShort) {
  if (!has_passes()) GTEST_SKIP() << kNoPasses;
  start_some_steps();
  expect_refused(kCutShort, {.in_pass = cuts_short()});
  EXPECT_LT(fs::file_size(file()), first_.size());
  write(first_);
  expect_resumes();
}

/// The file is whole again when its rows are read otherwise, for the code and for the steps.
TEST_F(RowsOfAPass, AreReadOtherwiseIfItFails) {
  if (!has_passes()) GTEST_SKIP() << kNoPasses;
  const Disturbance disturbance = {.in_pass = cuts_short(), .after_pass = [this] {
                                     if (fs::file_size(file()) == first_.size())
                                       ::_exit(97);  // it was not cut short
                                     write(first_);
                                   }};
  start_some_steps(disturbance);
  write(second_);
  expect_refused(kOtherRows);
  write(first_);
  expect_resumes(disturbance);
}

}  // namespace
}  // namespace cudp
