// Rows that do not fit the device are streamed (runtime/device/cuda/row_stream.hpp): under the
// emulator every training is that of an engine with all rows on the device, bit for bit. Copies are
// made as early as their waits allow, and as late.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/device/cuda/out_of_memory.hpp"
#include "runtime/ranks/launch.hpp"
#include "tests/support/coded_cases.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/ranked_training.hpp"
#include "tests/support/same_bits.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {
namespace {

/// A network, its rows, and steps of it.
struct StreamCase {
  const char* name;
  Network net;
  Dataset data;
  EngineSettings settings;
  StepScalars step = cases::still(0.1f, 0.7f);
  bool fused = true;
  bool by_allocation = false;  ///< whether batches are drawn by random allocation, too
};

/// Steps of about 40 of the rows.
EngineSettings stream_settings(Draw draw = Poisson{std::uint64_t{1} << 29}) {
  EngineSettings s;
  s.recipe.draw = draw;
  s.recipe.optimizer.kind = OptimizerKind::momentum;
  s.key = {{9, 8, 7}};
  s.micro_batch = 32;
  s.threads = 2;
  s.diagnostics = true;
  return s;
}

StreamCase stream_case(const char* name, const cases::Case& of, std::size_t rows = 300) {
  StreamCase c{name, cases::network_of(of), cases::examples_for(of, rows), stream_settings()};
  c.step.noise_std = 0.3f;
  return c;
}

StreamCase stream_case(const char* name, const cases::InfluenceCase& of) {
  StreamCase c{name, of.net, of.data, stream_settings()};
  c.step.noise_std = 0.3f;
  return c;
}

std::unique_ptr<Engine> engine_of(const StreamCase& c, const EngineSettings& s,
                                  const TestDevice& device) {
  return c.fused ? device_engine(c.net, s, device)
                 : layer_wise_engine(c.net, s, cuda::kLargeDense, device);
}

TrainState start_of_stream(const StreamCase& c) {
  TrainState s = cases::weights_for(c.net);
  s.moment1.assign(c.net.parameter_count, 0.0f);
  return s;
}

/// What `steps` steps from number `first` on leave.
cases::Left steps_of(const StreamCase& c, const TestDevice& device, const TrainState& start,
                     std::uint64_t first, std::size_t steps,
                     const std::function<void(Engine&)>& more = {}) {
  const auto engine = engine_of(c, c.settings, device);
  engine->load(c.data);
  engine->set_state(start);
  engine->run(c.settings.recipe, first, std::vector<StepScalars>(steps, c.step));
  if (more) more(*engine);
  return {.state = engine->state(), .norms = {}, .seen = engine->diagnostics()};
}

void expect_equal_bits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0);
}

constexpr std::size_t kAmple = std::size_t{4} << 30;

/// The case with public numbers that say that its rows fit no device.
StreamCase streamed(StreamCase c) {
  c.settings.expected_batch = 1e9 * rate_of(c.settings.recipe.draw);
  return c;
}

/// The least memory, but for an eighth, of a device that trains the case.
std::size_t least_memory(const StreamCase& c) {
  for (std::size_t memory = std::size_t{32} << 10;; memory += memory / 8) {
    try {
      const auto engine =
          engine_of(c, c.settings, {.shared_bytes = 227u << 10, .memory = memory, .runs = false});
      engine->load(c.data);
      engine->run(c.settings.recipe, 5, std::vector<StepScalars>(2, c.step));
      return memory;
    } catch (const cuda::OutOfMemory&) {
    }
  }
}

TestDevice device_with(std::size_t memory, unsigned seed = 1, DeviceLog* log = nullptr) {
  return {.seed = seed, .shared_bytes = 227u << 10, .memory = memory, .log = log};
}

/// Rows of every form: images of bytes, floats of which some are not finite, targets, coded rows,
/// texts with trained words.
std::vector<StreamCase> stream_cases() {
  std::vector<StreamCase> all;
  all.push_back(stream_case("images, fused", cases::kCases[4], 24));
  all.push_back(stream_case("floats, fused", cases::kCases[1]));
  all.back().data.floats[std::size_t{37} * 5] = NAN;
  all.back().data.floats[37 * 9 + 3] = INFINITY;
  all.back().by_allocation = true;
  all.push_back(stream_case("images by layers", cases::kCases[6], 40));
  all.push_back(stream_case("floats by layers", cases::kCases[1]));
  all.back().fused = false;
  all.back().data.floats[std::size_t{37} * 7] = NAN;
  all.push_back(stream_case(
      "table", cases::coded_case(cases::kCodedModels[3], cases::Adds::flat, 4, 300, false)));
  all.push_back(
      stream_case("table by layers",
                  cases::coded_case(cases::kCodedModels[4], cases::Adds::flat, 5, 300, false)));
  all.back().by_allocation = true;
  all.push_back(stream_case(
      "targets", cases::target_case("linear", Loss::huber, cases::Adds::flat, 6, false, 300)));
  all.push_back(stream_case("trained words", cases::kTextCases[3], 100));
  all.push_back(stream_case("texts", cases::kTextCases[0], 60));
  all.back().by_allocation = true;
  return all;
}

TEST(CudaStream, StepsAreThoseOfRowsOnTheDevice) {
  constexpr int kSteps = 5;
  bool has_several_parts = false;
  for (StreamCase& c : stream_cases())
    for (const Draw& draw : {Draw(Poisson{std::uint64_t{1} << 29}), Draw(Allocation{4})}) {
      SCOPED_TRACE(c.name);
      // How a batch is drawn has nothing to do with the form of its rows: a few forms show it.
      if (!c.by_allocation && std::holds_alternative<Allocation>(draw)) continue;
      c.settings.recipe.draw = draw;
      const cases::Left want = steps_of(c, device_with(kAmple), start_of_stream(c), 5, kSteps);
      EXPECT_GT(want.seen.examples, 10u);
      StreamCase s = streamed(c);
      std::vector<std::string> said;
      const std::size_t memory = least_memory(s);
      s.settings.say = [&](const std::string& line) { said.push_back(line); };
      // Buffers of few steps and of all, and copies that are made early and late.
      for (const auto& [bytes, seed] : {std::pair{memory, 1u}, {memory, 2u}, {kAmple, 1u}}) {
        DeviceLog log;
        cases::expect_same(
            steps_of(s, device_with(bytes, seed, &log), start_of_stream(c), 5, kSteps), want);
        EXPECT_EQ(std::ranges::count(log.launches, "flags ahead"), 0);
        const auto begins = std::ranges::count(log.launches, "begin");
        EXPECT_GE(begins, 1) << "the first step of each part";
        EXPECT_LE(begins, bytes == memory ? kSteps : 1);
        has_several_parts = has_several_parts || begins > 1;
        EXPECT_EQ(log.recordings, 4) << "a step and a start for each buffer";
      }
      ASSERT_EQ(said.size(), 3u);
      EXPECT_TRUE(said[0].starts_with("device: rows are streamed: ") &&
                  said[0].find(" GB of rows, ") != std::string::npos && said[0].ends_with(" free"))
          << said[0];
    }
  EXPECT_TRUE(has_several_parts);
}

/// Buffers with one step each, and with several; steps that the host must finish, so that those
/// behind them are staged again; a run that is stopped and one that goes on in another engine.
TEST(CudaStream, StoppedRunsGoOnWithTheirOwnRows) {
  StreamCase c = stream_case("softmax", {"softmax", "logistic", {69, 1, 1}, 10}, 500);
  c.step.noise_std = 0x1p19f;  // double leaves one pair in 240 undecided
  c.settings.recipe.draw = Poisson{std::uint64_t{1} << 28};
  const std::size_t least = least_memory(c);
  const cases::Left want = steps_of(c, device_with(kAmple), start_of_stream(c), 2, 12);
  // The budget of a buffer is 1/16 of the memory. Public numbers say that there are more rows.
  for (const auto& [memory, rows] : {std::pair{least, 0.0}, std::pair{4 * least, 1e6}}) {
    DeviceLog log;
    c.settings.expected_batch = rows / 16;
    const TestDevice device = device_with(memory, rows > 0.0 ? 2 : 1, &log);  // late, early
    cases::expect_same(steps_of(c, device, start_of_stream(c), 2, 12), want);
    EXPECT_GE(std::ranges::count(log.launches, "finish pairs"), 1);
    EXPECT_EQ(std::ranges::count(log.launches, "flags"), 0);
    EXPECT_EQ(std::ranges::count(log.launches, "flags ahead"), 0);
    const cases::Left half = steps_of(c, device, start_of_stream(c), 2, 5);
    cases::Left whole = steps_of(c, device, half.state, 7, 7);
    whole.seen += half.seen;
    cases::expect_same(whole, want);
  }
}

/// Every kind of contribution, and an observer that is shown each step.
TEST(CudaStream, EveryContributionIsTheSame) {
  for (const cases::Adds adds :
       {cases::Adds::per_layer, cases::Adds::automatic, cases::Adds::transformed})
    for (const bool fused : {true, false})
      for (const bool observed : {true, false}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(adds) << fused << observed);
        const cases::InfluenceCase of =
            cases::coded_case(cases::kCodedModels[3], adds, 8, 300, false);
        StreamCase c{"", of.net, of.data, of.settings};
        c.fused = fused;
        c.settings.micro_batch = 32;
        c.settings.recipe.draw = Poisson{std::uint64_t{1} << 29};  // more than a micro-batch
        if (!observed) c.settings.release_observer = nullptr;
        c.settings.diagnostics = true;
        StreamCase silent = c;
        silent.settings.release_observer = nullptr;
        const std::size_t memory = least_memory(streamed(silent));
        const cases::Left want = steps_of(c, device_with(kAmple), of.state, 3, 4);
        const std::vector<float> sum = of.released->sum;
        EXPECT_EQ(sum.empty(), !observed);
        int said = 0;
        c.settings.say = [&](const std::string&) { ++said; };
        cases::expect_same(steps_of(streamed(c), device_with(memory), of.state, 3, 4), want);
        EXPECT_EQ(of.released->sum, sum);
        EXPECT_EQ(said, 1);
      }
}

/// Steps take the same rows whatever lies in the buffers beside them.
TEST(CudaStream, NothingElseInABufferIsRead) {
  for (const StreamCase& of : stream_cases()) {
    SCOPED_TRACE(of.name);
    const StreamCase c = streamed(of);
    const std::size_t memory = least_memory(c);
    cases::expect_same_bits([&] {
      const cases::Left left = steps_of(c, device_with(memory), start_of_stream(c), 5, 2);
      cases::Bits bits;
      bits.add(left.state.parameters);
      bits.add(left.seen.norm());
      return bits;
    });
  }
}

TEST(CudaStream, SingleExamplesAreThoseOfTheDevice) {
  for (const StreamCase& of : stream_cases()) {
    SCOPED_TRACE(of.name);
    const std::uint32_t some[] = {7, 0, 19, 3, 23};
    const auto of_rows = [&](const StreamCase& c) {
      const auto engine = engine_of(c, c.settings, device_with(kAmple));
      engine->load(c.data);
      engine->set_state(start_of_stream(c));
      if (!c.fused) engine->run(c.settings.recipe, 1, {&c.step, 1});  // buffers are in use
      return engine->per_example(some, false);
    };
    const PerExample want = of_rows(of), got = of_rows(streamed(of));
    expect_equal_bits(got.losses, want.losses);
    expect_equal_bits(got.squared_norms, want.squared_norms);
  }
}

TEST(CudaStream, ATooLargeBatchMakesTheRunFail) {
  StreamCase c = stream_case("floats", cases::kCases[1]);
  TestDevice device = device_with(kAmple);
  device.batch_capacity = 10;
  try {
    (void)steps_of(streamed(c), device, start_of_stream(c), 1, 3);
    ADD_FAILURE() << "expected an error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), kBatchTooLarge);
  }
}

/// Small rows take less memory than the arrays by which batches of them are drawn.
TEST(CudaStream, ArraysForDrawingBatchesCountAsRowsDo) {
  constexpr std::size_t kRows = 100'000;
  for (const Draw& draw : {Draw(Poisson{std::uint64_t{1} << 20}), Draw(Allocation{1'000})}) {
    StreamCase c = stream_case("floats", cases::kCases[1], 8);
    c.settings.recipe.draw = draw;
    c.data = cases::examples_for(cases::kCases[1], kRows);
    const std::size_t of_row = feature_bytes(c.data) + sizeof(std::uint8_t);
    const std::size_t of_draws = std::holds_alternative<Allocation>(draw) ? 9 : 5;
    const auto streams = [&](std::size_t bytes_of_each) {
      bool said = false;
      c.settings.say = [&](const std::string& line) {
        said = said || line.starts_with("device: rows are streamed");
      };
      // Three quarters of the memory are for rows.
      const std::size_t memory = kRows * bytes_of_each / 3 * 4;
      engine_of(c, c.settings, {.shared_bytes = 227u << 10, .memory = memory, .runs = false})
          ->load(c.data);
      return said;
    };
    EXPECT_TRUE(streams(of_row + of_draws / 2));
    // All else takes less than the arrays do.
    EXPECT_FALSE(streams(of_row + 2 * of_draws));
  }
}

/// Candidates are drawn by norms that the step before may have changed, so their rows stay on the
/// device; without memory for them the run ends with one line.
TEST(CudaStream, CandidatesNeedTheirRowsOnTheDevice) {
  StreamCase c = stream_case("floats", cases::kCases[1], 100);
  c.settings.recipe = {
      .draw = Candidates{{.clip = 1.0, .multiple = 3.0, .min_norm = 0.2, .rate = 0.02}},
      .contribution = AcceptedDirection{}};
  const std::size_t memory = least_memory(c);
  c.data = cases::examples_for(cases::kCases[1], 20'000);
  const auto engine = engine_of(c, c.settings, device_with(memory));
  EXPECT_THROW(engine->load(c.data), cuda::OutOfMemory);
}

/// Ranks stream their own rows; with sums that the devices add up, and the host.
TEST(CudaStream, RanksHaveTheStateOfOne) {
  constexpr std::size_t kRows = 1'024;
  const cases::Case& of = cases::kCases[1];
  const Network net = cases::network_of(of);
  const Dataset data = cases::examples_for(of, kRows);
  for (const bool on_device : {true, false}) {
    int said = 0;
    const auto make = [&](std::size_t memory) {
      return [&, memory](const Network& n, EngineSettings s) {
        s.micro_batch = 32;
        if (memory != kAmple) s.expected_batch = 1e9 / 64;
        s.say = [&said](const std::string& line) {
          said += line.starts_with("device: rows are streamed") ? 1 : 0;
        };
        TestDevice device = device_with(memory);
        if (on_device) device.sums.refusal = "";
        return device_engine(n, s, device);
      };
    };
    StreamCase c{"", net, data, stream_settings()};
    const cases::Way way = cases::ways()[0];
    c.settings.recipe = way.recipe;
    const std::size_t memory = least_memory(streamed(c));
    const cases::Left whole = cases::train(make(kAmple), net, data, way.recipe, alone());
    const auto part = [&](Ranks& ranks) {
      const Dataset mine = only(data, range_of(ranks.rank(), 2, kRows));
      cases::expect_same(cases::train(make(memory), net, mine, way.recipe, ranks), whole);
      EXPECT_EQ(said, 1);
    };
    const auto ranks = fork_ranks(2, std::chrono::seconds(120), [&](Ranks& mine) {
      part(mine);
      return testing::Test::HasFailure() ? Exit::failure : Exit::ok;
    });
    part(*ranks);
  }
  share_cores(1);
}

// --- Rows in a file ---

/// The same examples, with features in a file of a folder.
Dataset in_file(Dataset data, const std::filesystem::path& folder) {
  RowFileWriter writer(folder, "rows", feature_bytes(data));
  data.holds_bytes = data.is_bytes();
  move_features(data, writer);
  data.rows = writer.finish();
  return data;
}

/// They are copied to the device, or streamed; a test set in a file is read in parts.
TEST(CudaStream, RowsInAFileAreThoseInMemory) {
  TempFolder folder;
  for (StreamCase& c : stream_cases()) {
    SCOPED_TRACE(c.name);
    std::vector<float> of_memory;
    const Dataset tested = c.data;
    const cases::Left want = steps_of(c, device_with(kAmple), start_of_stream(c), 5, 4,
                                      [&](Engine& e) { of_memory = e.logits(tested); });
    c.data = in_file(std::move(c.data), folder.path());
    cases::expect_same(steps_of(streamed(c), device_with(kAmple), start_of_stream(c), 5, 4), want);
    cases::expect_same(steps_of(c, device_with(kAmple), start_of_stream(c), 5, 4,
                                [&](Engine& e) { expect_equal_bits(e.logits(c.data), of_memory); }),
                       want);
  }
}

/// A file that is cut short during a run ends it with one line.
TEST(CudaStream, AFileThatIsCutShortEndsTheRun) {
  TempFolder folder;
  StreamCase c = stream_case("floats", cases::kCases[1]);
  const std::string path =
      folder.write("rows", std::string(reinterpret_cast<const char*>(c.data.floats.data()),
                                       c.data.floats.size() * sizeof(float)));
  c.data.rows = open_rows(path, 0, feature_bytes(c.data), c.data.size());
  c.data.floats.clear();
  const auto engine = engine_of(c, streamed(c).settings, device_with(kAmple));
  engine->load(c.data);
  engine->set_state(start_of_stream(c));
  engine->run(c.settings.recipe, 0, std::vector<StepScalars>(2, c.step));
  std::filesystem::resize_file(path, 4'000);
  try {
    engine->run(c.settings.recipe, 2, std::vector<StepScalars>(2, c.step));
    ADD_FAILURE() << "expected an error";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("cut short"), std::string::npos) << e.what();
    EXPECT_EQ(e.code(), Exit::bad_input);
  }
}

}  // namespace
}  // namespace cudp
