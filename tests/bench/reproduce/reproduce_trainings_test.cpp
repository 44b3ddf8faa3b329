// Tables that are made of trainings: what is kept, and what a finished table says.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/reproduce/adp_table.hpp"
#include "bench/reproduce/trainings.hpp"
#include "runtime/base/error.hpp"
#include "tests/support/cudp_process.hpp"

namespace cudp {
namespace {

using Json = nlohmann::json;

constexpr const char* kSettings =
    "dataset = 'glyphs'\nmodel = 'logistic'\nepsilon = 3.0\ndelta = 1e-5\nsteps = 4\n";

std::vector<Json> json_lines_of(const std::filesystem::path& file) {
  std::vector<Json> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) found.push_back(Json::parse(line));
  return found;
}

TEST(Trainings, AreThoseOfTrain) {
  const TemporaryFolder folder;
  const ReproduceOptions options{.data_dir = "data", .threads = 1};
  Reporter quiet(true);
  const Trained ours = Trainings(options, quiet).run("t", kSettings, 5);
  const Finished f =
      run_cudp(folder, {"train", "--dataset", "glyphs", "--model", "logistic", "--epsilon", "3",
                        "--delta", "1e-5", "--steps", "4", "--seed", "5", "--eval-every", "0",
                        "--json", "--quiet", "--out", folder / "r"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json theirs = Json::parse(f.out);
  EXPECT_EQ(ours.last, 100.0 * theirs["test_accuracy"].get<double>());
  EXPECT_EQ(ours.epsilon, theirs["epsilon"].get<double>());
  EXPECT_EQ(ours.sigma, theirs["sigma"].get<double>());
}

TEST(Trainings, AreKeptForTheSameSettingsOnly) {
  const TemporaryFolder folder;
  const std::string file = folder / "t.runs.jsonl";
  ReproduceOptions options{.data_dir = "data", .threads = 1};
  options.results_file = file;
  Reporter quiet(true);
  const Trained first = Trainings(options, quiet).run("t", kSettings, 1);
  ASSERT_EQ(json_lines_of(file).size(), 1u);

  // A later call believes the file, and a line that was cut off is no line.
  Json doctored = json_lines_of(file)[0];
  doctored["last"] = 12.5;
  write_text(file, doctored.dump() + "\n" + doctored.dump().substr(0, 40) + "\n");
  Trainings later(options, quiet);
  EXPECT_EQ(later.run("t", kSettings, 1).last, 12.5);
  // Not for another seed, nor for other settings, nor for other models on the way.
  EXPECT_NE(later.run("t", kSettings, 2).last, 12.5);
  EXPECT_NE(later.run("t", std::string(kSettings) + "lr = 0.25\n", 1).last, 12.5);
  EXPECT_EQ(later.run("t", std::string(kSettings) + "eval-every = 1\n", 1).last, first.last);
  EXPECT_EQ(later.run("t", kSettings, 1).last, 12.5);
}

std::string big_endian(std::uint32_t x) {
  return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8),
          static_cast<char>(x)};
}

/// Images of 4 x 4, each bright where its class says.
void write_images(const std::string& folder, const std::string& part, int examples) {
  std::string images = big_endian(2051) + big_endian(static_cast<std::uint32_t>(examples)) +
                       big_endian(4) + big_endian(4);
  std::string labels = big_endian(2049) + big_endian(static_cast<std::uint32_t>(examples));
  for (int i = 0; i < examples; ++i) {
    labels += static_cast<char>(i % 10);
    for (int pixel = 0; pixel < 16; ++pixel)
      images += static_cast<char>(pixel == i % 10 ? 255 : 7 * (i + pixel) % 64);
  }
  write_text(folder + "/" + part + "-images-idx3-ubyte", images);
  write_text(folder + "/" + part + "-labels-idx1-ubyte", labels);
}

TEST(AdpTable, IsWholeAndGoesOnWhereItWas) {
  const TemporaryFolder folder;
  const std::string images = folder.path().string();
  write_images(images, "train", 600);
  write_images(images, "t10k", 50);
  ReproduceOptions options{.quick = true, .threads = 1};
  options.results_file = folder / "adp-table2.runs.jsonl";
  options.overrides =
      "dataset = '" + images + "'\nsize-is-public = true\ntest-data-is-public = true\n";
  Reporter quiet(true);
  const ReproducedTable table = adp_table2(options, quiet);
  ASSERT_EQ(table.groups.size(), 2u);
  for (const TableGroup& group : table.groups) {
    const std::vector<ResultRow>& rows = group.measured;
    ASSERT_EQ(rows.size(), 6u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(rows[2].values[i], rows[0].values[i] - rows[1].values[i], 1e-9);
      EXPECT_GE(rows[3].values[i], rows[0].values[i]);
    }
  }
  const std::vector<Json> kept = json_lines_of(options.results_file);
  ASSERT_EQ(kept.size(), 12u);
  for (const Json& run : kept) EXPECT_LE(run["epsilon"].get<double>(), 0.2);

  // As if the last three had not been reached.
  std::string text;
  for (std::size_t i = 0; i < 9; ++i) text += kept[i].dump() + "\n";
  write_text(options.results_file, text);
  EXPECT_EQ(table_json(adp_table2(options, quiet))["groups"], table_json(table)["groups"]);
  EXPECT_EQ(json_lines_of(options.results_file).size(), 12u);
}

TEST(DpisTable, SaysWhatItNeeds) {
  const TemporaryFolder folder;
  write_images(folder.path().string(), "train", 60);
  write_images(folder.path().string(), "t10k", 50);
  const std::string data = folder.path().string();
  const Finished small = run_cudp(folder, {"reproduce", "dpis-table3", "--data-dir", data});
  EXPECT_EQ(small.exit, 2);
  EXPECT_NE(small.err.find("expected the published"), std::string::npos) << small.err;
  EXPECT_NE(small.err.find("found none complete"), std::string::npos) << small.err;
  const Finished other =
      run_cudp(folder, {"reproduce", "dpis-table3", "--epsilons", "0.7", "--data-dir", data});
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("--epsilons: expected 0.5, 1, 2, 3 or 4, found 0.7"), std::string::npos);
  const Finished nowhere =
      run_cudp(folder, {"reproduce", "group-fig1", "--out", data + "/train-labels-idx1-ubyte/out"});
  EXPECT_EQ(nowhere.exit, 2);
  EXPECT_NE(nowhere.err.find("--out: expected a folder"), std::string::npos);
  const Finished none = run_cudp(folder, {"reproduce", "group-fig1", "--epsilons", "1"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("--epsilons: expected none"), std::string::npos);
}

}  // namespace
}  // namespace cudp
