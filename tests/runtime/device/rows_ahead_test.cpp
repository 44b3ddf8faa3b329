// Batches that are drawn and read one step ahead, from a file that is larger than memory: the same
// bits as from memory.
#include "runtime/device/cpu/rows_ahead.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/coded_cases.hpp"
#include "tests/support/disk_folder.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

using cases::Adds;
using cases::CodedModel;
using cases::InfluenceCase;

/// Returns the data set with its features in a file that is treated as larger than memory.
Dataset on_disk(Dataset data, const std::filesystem::path& path) {
  const std::size_t size = data.size();
  const std::size_t row_bytes = feature_bytes(data);
  write_text(path, std::string(data.coded.begin(), data.coded.end()));
  data.coded.clear();
  auto rows = std::make_shared<RowFile>(path.string(),
                                        FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
                                        0, row_bytes, size, false, path.parent_path());
  rows->let_exceed_memory();
  data.rows = std::move(rows);
  return data;
}

class ReadAhead : public testing::TestWithParam<std::tuple<CodedModel, Adds>> {
 protected:
  static InfluenceCase small_case() {
    InfluenceCase c =
        cases::coded_case(std::get<0>(GetParam()), std::get<1>(GetParam()), 5, 3'000, false);
    c.settings.threads = 2;
    return c;
  }
  DiskFolder folder_;
};

/// Runs steps [first, last) of a draw.
void run(Engine& engine, const InfluenceCase& c, const Draw& draw, std::uint64_t first,
         std::uint64_t last) {
  StepRecipe recipe = c.settings.recipe;
  recipe.draw = draw;
  const std::vector<StepScalars> scalars(last - first, cases::still(0.01f, c.clip_norm));
  engine.run(recipe, first, scalars);
}

TEST_P(ReadAhead, StepsAreThoseOfRowsInMemory) {
  const InfluenceCase c = small_case();
  const Dataset data = on_disk(c.data, folder_.path() / "rows");
  if (RowReader::open(*data.rows) == nullptr)
    GTEST_SKIP() << "/var/tmp cannot be read in the background";
  const Draw often = Poisson{std::uint64_t{1} << 29};
  const Draw seldom = Poisson{std::uint64_t{1} << 25};
  std::vector<TrainState> states[2];
  for (int k = 0; k < 2; ++k) {
    InfluenceCase of = c;
    of.settings.recipe.draw = often;
    const auto engine = cases::cpu_engine_at(best_simd_level(), of.net, of.settings);
    engine->load(k == 0 ? c.data : data);
    engine->set_state(c.state);
    const auto keep = [&] { states[k].push_back(engine->state()); };
    run(*engine, of, often, 0, 7), keep();
    EXPECT_FALSE(engine->sampled(8).empty());  // draws between two steps
    run(*engine, of, often, 7, 12), keep();
    run(*engine, of, seldom, 12, 20), keep();  // step 12 was read ahead for another draw
    run(*engine, of, often, 30, 33), keep();   // and step 20 was not taken
    engine->set_state(states[k][1]);
    run(*engine, of, seldom, 12, 20), keep();
  }
  ASSERT_EQ(states[0].size(), states[1].size());
  for (std::size_t i = 0; i < states[0].size(); ++i) {
    EXPECT_TRUE(states[0][i].parameters == states[1][i].parameters) << i;
    EXPECT_TRUE(states[0][i].moment1 == states[1][i].moment1) << i;
  }
  EXPECT_TRUE(states[0][2].parameters == states[0][4].parameters);
  EXPECT_FALSE(states[0][0].parameters == states[0][1].parameters);
}

INSTANTIATE_TEST_SUITE_P(Models, ReadAhead,
                         testing::Values(std::tuple{cases::kCodedModels[0], Adds::flat},
                                         std::tuple{cases::kCodedModels[3], Adds::flat},
                                         std::tuple{cases::kCodedModels[4], Adds::per_layer},
                                         std::tuple{cases::kCodedModels[2], Adds::transformed}),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  std::to_string(info.index);
                         });

struct Drawing {
  explicit Drawing(const Dataset& data)
      : team(2), draws(data, Generator::chacha20, SharedKey(RandomKey{}), team) {
    settings.key = SharedKey(RandomKey{});
    settings.threads = 2;
  }
  std::unique_ptr<cpu::RowsAhead> ahead(const Dataset& data, const cpu::StageLimits& limits = {}) {
    return cpu::RowsAhead::open(data, draws, settings, limits);
  }
  ThreadTeam team;
  BatchDraws draws;
  EngineSettings settings;
};

class ReadAheadBatches : public testing::Test {
 protected:
  ReadAheadBatches()
      : c_(cases::coded_case(cases::kCodedModels[0], Adds::flat, 5, 3'000, false)),
        data_(on_disk(c_.data, folder_.path() / "rows")) {}

  /// Takes a step, and compares its batch and features with those of `expected` in memory.
  void take(cpu::RowsAhead& ahead, Drawing& expected, std::uint64_t step, const Draw& draw) {
    SCOPED_TRACE(step);
    const std::size_t width = feature_bytes(data_);
    const cpu::RowsAhead::Step taken = ahead.take(step, draw);
    const auto batch = expected.draws.draw(step, draw);
    ASSERT_TRUE(std::ranges::equal(taken.batch, batch));
    ASSERT_EQ(taken.examples.size(), batch.size());
    ASSERT_NE(taken.data, &data_);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::size_t at = taken.examples[i];
      ASSERT_EQ(taken.data->labels[at], c_.data.labels[batch[i]]);
      ASSERT_TRUE(
          std::equal(taken.data->coded.begin() + static_cast<std::ptrdiff_t>(at * width),
                     taken.data->coded.begin() + static_cast<std::ptrdiff_t>((at + 1) * width),
                     c_.data.coded.begin() + static_cast<std::ptrdiff_t>(batch[i] * width)));
    }
  }

  DiskFolder folder_;
  InfluenceCase c_;
  Dataset data_;
};

TEST_F(ReadAheadBatches, HaveTheFeaturesOfTheDrawnRows) {
  Drawing of(data_), expected(data_);
  const auto ahead = of.ahead(data_);
  if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  for (const Draw& draw : {Draw(Allocation{11}), Draw(Poisson{std::uint64_t{1} << 30})})
    for (std::uint64_t step = 5; step < 30; ++step) take(*ahead, expected, step, draw);
}

/// Steps of a small file share passes.
constexpr cpu::StageLimits kSmall{
    .rows = 200, .chunks = 1 << 17, .min_chunk = 1 << 12, .always = true};

TEST_F(ReadAheadBatches, AreSortedByStepInPassesOverTheFile) {
  for (const Draw& draw : {Draw(Allocation{150}), Draw(Poisson{(std::uint64_t{1} << 32) / 150})}) {
    Drawing of(data_), expected(data_);
    of.settings.recipe.draw = draw;
    of.settings.expected_batch = 20;
    of.settings.steps = 100;
    const auto ahead = of.ahead(data_, kSmall);
    if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
    for (std::uint64_t step = 40; step < 100; ++step) take(*ahead, expected, step, draw);
    EXPECT_EQ(ahead->staged_batches(), 60u);
    // Steps that come again, steps after the last one, and another draw.
    for (const std::uint64_t step : {45u, 46u, 99u, 100u, 101u}) take(*ahead, expected, step, draw);
    take(*ahead, expected, 47, Poisson{std::uint64_t{1} << 28});
    take(*ahead, expected, 48, draw);
    EXPECT_EQ(ahead->staged_batches(), 60u);
  }
}

/// A pass before the first step hands all rows over, and copies those of the steps that begin then.
TEST_F(ReadAheadBatches, AreCopiedWhileAllRowsAreReadForAnotherUse) {
  const Draw draw = Poisson{(std::uint64_t{1} << 32) / 150};
  const std::size_t width = feature_bytes(data_);
  for (const std::uint64_t first : {0u, 40u, 95u}) {
    SCOPED_TRACE(first);
    Drawing of(data_), expected(data_);
    of.settings.recipe.draw = draw;
    of.settings.expected_batch = 20;
    of.settings.steps = 100;
    const auto ahead = of.ahead(data_, kSmall);
    if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
    std::vector<std::uint8_t> seen(c_.data.coded.size());
    const RowUse use{.use = [&](std::size_t at, std::span<const std::uint8_t> rows) {
      std::ranges::copy(rows, seen.begin() + static_cast<std::ptrdiff_t>(at * width));
    }};
    ASSERT_TRUE(ahead->read_all_rows(first, draw, use));
    EXPECT_TRUE(std::ranges::equal(seen, c_.data.coded));
    EXPECT_FALSE(ahead->read_all_rows(first, draw, use));  // a second time
    for (std::uint64_t step = first; step < 100; ++step) take(*ahead, expected, step, draw);
    EXPECT_EQ(ahead->staged_batches(), 100 - first);
    for (const std::uint64_t step : {45u, 99u, 100u}) take(*ahead, expected, step, draw);
    take(*ahead, expected, 47, Poisson{std::uint64_t{1} << 28});
  }
}

/// Without that pass, batches are copied by later passes or read row by row.
TEST_F(ReadAheadBatches, AreTheSameIfRowsCannotBeHandedOver) {
  const Draw draw = Poisson{(std::uint64_t{1} << 32) / 150};
  Drawing of(data_), expected(data_);
  of.settings.recipe.draw = draw;
  of.settings.expected_batch = 20;
  of.settings.steps = 100;
  const auto ahead = of.ahead(data_, kSmall);
  if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  const RowUse use{.use = [](std::size_t, std::span<const std::uint8_t>) {},
                   .multiple = std::size_t{1} << 30};  // more rows than are read at a time
  EXPECT_FALSE(ahead->read_all_rows(0, draw, use));
  for (std::uint64_t step = 0; step < 100; ++step) take(*ahead, expected, step, draw);
}

/// The file is cut short while the pass hands its rows over, and whole again afterwards.
TEST_F(ReadAheadBatches, AreTheSameIfThePassThatHandsRowsOverFails) {
  const Draw draw = Poisson{(std::uint64_t{1} << 32) / 150};
  const std::filesystem::path path = folder_.path() / "rows";
  const std::string rows = content_of(path);
  Drawing of(data_), expected(data_);
  of.settings.recipe.draw = draw;
  of.settings.expected_batch = 20;
  of.settings.steps = 100;
  const auto ahead = of.ahead(data_, kSmall);
  if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  bool is_handed_over = false;
  const RowUse use{.use = [&](std::size_t, std::span<const std::uint8_t>) {
    is_handed_over = true;
    std::filesystem::resize_file(path, rows.size() / 2);
  }};
  EXPECT_FALSE(ahead->read_all_rows(0, draw, use));
  EXPECT_TRUE(is_handed_over);
  write_text(path, rows);
  for (std::uint64_t step = 0; step < 100; ++step) take(*ahead, expected, step, draw);
  EXPECT_EQ(ahead->staged_batches(), 0u);
}

/// The copies are those of the rows that were handed over: a change of the file afterwards is not
/// seen by the first steps.
TEST_F(ReadAheadBatches, OfTheFirstPassAreThoseThatWereHandedOver) {
  const Draw draw = Poisson{(std::uint64_t{1} << 32) / 150};
  Drawing of(data_), expected(data_);
  of.settings.recipe.draw = draw;
  of.settings.expected_batch = 20;
  of.settings.steps = 8;
  const auto ahead = of.ahead(data_, kSmall);
  if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  const RowUse use{.use = [](std::size_t, std::span<const std::uint8_t>) {}};
  ASSERT_TRUE(ahead->read_all_rows(0, draw, use));
  write_text(folder_.path() / "rows", std::string(c_.data.coded.size(), '\xff'));
  for (std::uint64_t step = 0; step < 8; ++step) take(*ahead, expected, step, draw);
  EXPECT_EQ(ahead->staged_batches(), 8u);
}

/// With the usual limits, and steps that draw so few rows that no pass is made only for them.
TEST_F(ReadAheadBatches, DrawnSeldomAreCopiedWhileAllRowsAreReadForAnotherUse) {
  c_ = cases::coded_case(cases::kCodedModels[0], Adds::flat, 5, 150'000, false);
  data_ = on_disk(c_.data, folder_.path() / "many_rows");
  const Draw draw = Poisson{(std::uint64_t{1} << 32) / 7'500};
  Drawing of(data_), expected(data_);
  of.settings.recipe.draw = draw;
  of.settings.expected_batch = 20;
  of.settings.steps = 1'000;
  EXPECT_EQ(cpu::plan_stage(data_, draw, 20, 1'000, false).steps, 0u);
  const cpu::StagePlan plan = cpu::plan_stage(data_, draw, 20, 1'000, true);
  ASSERT_GT(plan.steps, 0u);
  ASSERT_LT(plan.steps, 1'000u);
  EXPECT_EQ(plan.files, 1u);
  const auto ahead = of.ahead(data_);
  if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  const RowUse use{.use = [](std::size_t, std::span<const std::uint8_t>) {}};
  ASSERT_TRUE(ahead->read_all_rows(0, draw, use));
  for (std::uint64_t step = 0; step < 1'000; ++step) take(*ahead, expected, step, draw);
  EXPECT_EQ(ahead->staged_batches(), plan.steps);  // the others were read row by row
}

TEST_F(ReadAheadBatches, LargerThanTheirSpaceAreReadRowByRow) {
  const cpu::StagePlan plan =
      cpu::plan_stage(data_, Poisson{std::uint64_t{1} << 30}, 20, 100, true, kSmall);
  ASSERT_GT(plan.slot_rows, 0u);
  ASSERT_LT(plan.slot_rows, data_.size());
  // About half of the batches are larger than their space.
  const Draw draw = Poisson{(std::uint64_t{1} << 32) * plan.slot_rows / data_.size()};
  Drawing of(data_), expected(data_);
  of.settings.recipe.draw = draw;
  of.settings.expected_batch = 20;
  of.settings.steps = 100;
  const auto ahead = of.ahead(data_, kSmall);
  if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  for (std::uint64_t step = 0; step < 100; ++step) take(*ahead, expected, step, draw);
  EXPECT_GT(ahead->staged_batches(), 20u);
  EXPECT_LT(ahead->staged_batches(), 80u);
}

TEST_F(ReadAheadBatches, OfALaterStepAreReadRowByRow) {
  const Draw draw = Poisson{(std::uint64_t{1} << 32) / 150};
  Drawing of(data_), expected(data_);
  of.settings.recipe.draw = draw;
  of.settings.expected_batch = 20;
  of.settings.steps = 100;
  const auto ahead = of.ahead(data_, kSmall);
  if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  for (const std::uint64_t step : {0u, 1u, 70u, 71u, 72u, 90u}) take(*ahead, expected, step, draw);
  // Those that were read ahead of the first steps.
  EXPECT_GE(ahead->staged_batches(), 3u);
  EXPECT_LT(ahead->staged_batches(), 10u);
}

TEST_F(ReadAheadBatches, InPassesRefuseAFileThatIsCutShortOrChanged) {
  const std::filesystem::path path = folder_.path() / "rows";
  const std::string rows = content_of(path);
  const Draw draw = Poisson{(std::uint64_t{1} << 32) / 150};
  for (const std::string& left :
       {rows.substr(0, rows.size() / 2), std::string(rows.size(), '\xff')})
    for (const std::uint64_t first : {0u, 1u}) {  // before the first pass, or after it
      write_text(path, rows);
      Drawing of(data_);
      of.settings.recipe.draw = draw;
      of.settings.expected_batch = 20;
      of.settings.steps = 100;
      const auto ahead = of.ahead(data_, kSmall);
      if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
      if (first > 0) ahead->take(0, draw);
      write_text(path, left);
      // A pass, and the one after it, may have been made before.
      EXPECT_THROW(
          {
            for (std::uint64_t step = first; step < 30; ++step) ahead->take(step, draw);
          },
          InputError);
    }
}

TEST_F(ReadAheadBatches, AreNotSortedIfThatIsNotPossible) {
  Drawing of(data_);
  const Draw draw = Poisson{(std::uint64_t{1} << 32) / 150};
  of.settings.recipe.draw = draw;
  of.settings.expected_batch = 20;
  of.settings.steps = 100;
  if (of.ahead(data_) == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  EXPECT_NE(cpu::StagedSteps::open(data_, of.settings, kSmall), nullptr);
  of.settings.steps = 0;  // unknown
  EXPECT_EQ(cpu::StagedSteps::open(data_, of.settings, kSmall), nullptr);
  of.settings.steps = 100;
  of.settings.recipe.draw = Candidates{};  // drawn by norms, which change
  EXPECT_EQ(cpu::StagedSteps::open(data_, of.settings, kSmall), nullptr);
  of.settings.recipe.draw = draw;
  data_.rows = open_rows(folder_.path() / "rows", 0, feature_bytes(data_), data_.size());
  EXPECT_EQ(cpu::StagedSteps::open(data_, of.settings, kSmall), nullptr);  // no folder for copies
}

TEST(StagePlans, AreMadeIfAPassIsFasterThanReads) {
  constexpr std::uint64_t kBytes = 12'000'000'000;
  const DiskFolder folder;
  const auto steps_of_pass = [&](std::size_t row_bytes, double batch, std::uint64_t steps,
                                 bool is_read_anyway = false) {
    Dataset data;
    data.labels.resize(kBytes / row_bytes);
    write_text(folder.path() / "rows", "");
    std::filesystem::resize_file(folder.path() / "rows", kBytes);  // takes no space
    data.rows = open_rows(folder.path() / "rows", 0, row_bytes, data.size());
    const double rate = batch / static_cast<double>(data.size());
    const cpu::StagePlan plan = cpu::plan_stage(
        data, Poisson{static_cast<std::uint64_t>(rate * 0x1p32)}, batch, steps, is_read_anyway);
    if (plan.steps > 0) {
      EXPECT_GT(static_cast<double>(plan.slot_rows), batch + 5.0 * std::sqrt(batch));
      EXPECT_LT(plan.disk(row_bytes), 2 * kBytes / 3);
      EXPECT_LT(plan.memory(), std::uint64_t{150'000'000});
      EXPECT_GE(plan.chunk_bytes, 4'096u);
    }
    return plan.steps;
  };
  // As many steps as draw 2^22 rows, in passes of equal size.
  EXPECT_NEAR(static_cast<double>(steps_of_pass(784, 8'192, 100'000)), 510.0, 3.0);
  EXPECT_NEAR(static_cast<double>(steps_of_pass(784, 8'192, 2'000)), 500.0, 3.0);
  // One pass alone may copy three times as many: there is no other one beside it.
  EXPECT_EQ(steps_of_pass(784, 8'192, 1'000), 1'000u);
  EXPECT_EQ(steps_of_pass(784, 8'192, 50), 0u);           // too few steps for a pass
  EXPECT_EQ(steps_of_pass(784, 256, 1'000'000), 0u);      // too few rows
  EXPECT_EQ(steps_of_pass(52, 8'192, 1'000'000), 0u);     // the draws take longer than the reads
  EXPECT_EQ(steps_of_pass(4'096, 2'048, 1'000'000), 0u);  // rows are as large as reads
  EXPECT_EQ(steps_of_pass(784, 0, 100'000), 0u);
  // A pass that is made anyway copies the rows of any number of steps.
  EXPECT_EQ(steps_of_pass(784, 8'192, 1'000, true), 1'000u);
  EXPECT_EQ(steps_of_pass(784, 8'192, 100, true), 100u);
  EXPECT_EQ(steps_of_pass(784, 8'192, 1, true), 1u);
  // If draws take long, it copies the rows of as many steps as are drawn in 25 s.
  EXPECT_EQ(steps_of_pass(52, 8'192, 100, true), 100u);
  EXPECT_NEAR(static_cast<double>(steps_of_pass(52, 8'192, 1'000'000, true)), 106.0, 1.0);
  EXPECT_EQ(steps_of_pass(9'000, 2'048, 1'000, true), 0u);  // rows that cost as much as reads
}

TEST_F(ReadAheadBatches, RefuseAFileThatIsCutShortOrChanged) {
  const std::filesystem::path path = folder_.path() / "rows";
  const std::string rows = content_of(path);
  const Draw draw = Poisson{std::uint64_t{1} << 30};
  for (const std::string& left :
       {rows.substr(0, rows.size() / 2), std::string(rows.size(), '\xff')}) {
    write_text(path, rows);
    Drawing of(data_);
    const auto ahead = of.ahead(data_);
    if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
    ahead->take(0, draw);
    write_text(path, left);
    // The rows of step 1 may have been read before.
    EXPECT_THROW((ahead->take(1, draw), ahead->take(2, draw)), InputError);
  }
}

TEST_F(ReadAheadBatches, AreNotReadFromAFileThatStaysInMemory) {
  Drawing of(data_);
  data_.rows = open_rows(folder_.path() / "rows", 0, feature_bytes(data_), data_.size());
  EXPECT_EQ(of.ahead(data_), nullptr);
  EXPECT_EQ(of.ahead(c_.data), nullptr);
}

}  // namespace
}  // namespace cudp
