// Batches that are drawn and read one step ahead, from a file that is larger than memory: the same
// bits as from memory.
#include "runtime/device/cpu/rows_ahead.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
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
                                        0, row_bytes, size);
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
      : team(2), draws(data, Generator::chacha20, SharedKey(RandomKey{}), team) {}
  ThreadTeam team;
  BatchDraws draws;
};

class ReadAheadBatches : public testing::Test {
 protected:
  ReadAheadBatches()
      : c_(cases::coded_case(cases::kCodedModels[0], Adds::flat, 5, 3'000, false)),
        data_(on_disk(c_.data, folder_.path() / "rows")) {}

  DiskFolder folder_;
  InfluenceCase c_;
  Dataset data_;
};

TEST_F(ReadAheadBatches, HaveTheFeaturesOfTheDrawnRows) {
  Drawing of(data_), expected(data_);
  const auto ahead = cpu::RowsAhead::open(data_, of.draws);
  if (ahead == nullptr) GTEST_SKIP() << "/var/tmp cannot be read in the background";
  const std::size_t width = feature_bytes(data_);
  for (const Draw& draw : {Draw(Allocation{11}), Draw(Poisson{std::uint64_t{1} << 30})})
    for (std::uint64_t step = 5; step < 30; ++step) {
      const cpu::RowsAhead::Step taken = ahead->take(step, draw);
      const auto batch = expected.draws.draw(step, draw);
      ASSERT_TRUE(std::ranges::equal(taken.batch, batch)) << step;
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
}

TEST_F(ReadAheadBatches, RefuseAFileThatIsCutShortOrChanged) {
  const std::filesystem::path path = folder_.path() / "rows";
  const std::string rows = content_of(path);
  const Draw draw = Poisson{std::uint64_t{1} << 30};
  for (const std::string& left :
       {rows.substr(0, rows.size() / 2), std::string(rows.size(), '\xff')}) {
    write_text(path, rows);
    Drawing of(data_);
    const auto ahead = cpu::RowsAhead::open(data_, of.draws);
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
  EXPECT_EQ(cpu::RowsAhead::open(data_, of.draws), nullptr);
  EXPECT_EQ(cpu::RowsAhead::open(c_.data, of.draws), nullptr);
}

}  // namespace
}  // namespace cudp
