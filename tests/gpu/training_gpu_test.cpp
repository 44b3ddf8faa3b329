// `cudp train --device cuda`, whole: a few steps of each kind of method against the CPU's, killed
// and resumed.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/verify/checker.hpp"
#include "runtime/base/safetensors.hpp"
#include "tests/gpu/training.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/tf32_presets.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRows = 200;
constexpr std::uint32_t kImages = 48;

/// A table of two classes.
void write_table(const fs::path& folder) {
  write_text(folder / "people.csv.schema.toml", R"(name = "people"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = "town", kind = "categorical", values = ["Aosta", "Bath", "Cuenca"]},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
)");
  std::mt19937_64 random(5);
  std::string text = "age,hours,town,ill\n";
  const char* const towns[] = {"Aosta", "Bath", "Cuenca"};
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += std::to_string(age) + "," + std::to_string(hours) + "," + towns[random() % 3] +
            (age + hours + random() % 20 > 80 ? ",yes\n" : ",no\n");
  }
  write_text(folder / "people.csv", text);
}

const Arguments kTable = {"--dataset", "people.csv"};
const Arguments kImagesOf = {"--dataset", "images"};
const Arguments kSteps = {"--batch", "40", "--steps", "5"};

struct TrainingCase {
  const char* name;
  Arguments data;
  Arguments flags;
  /// Of numbers in the certificate and the ledger: what follows from norms at weights that differ
  /// in their last bits.
  double tolerance = 0.0;
};
void PrintTo(const TrainingCase& c, std::ostream* os) { *os << c.name; }

const TrainingCase kTrainings[] = {
    {"cnn",
     kImagesOf,
     {"--model", "cnn", "--activation", "tanh", "--batch", "8", "--steps", "3", "--optimizer",
      "momentum", "--momentum", "0.9"}},
    {"scatter_cnn",
     kImagesOf,
     {"--features", "scatter", "--feature-cache", "features", "--model", "scatter-cnn", "--batch",
      "6", "--steps", "3"}},
    {"logistic", kTable, with({"--model", "logistic"}, kSteps)},
    {"adam_ema", kTable,
     with({"--model", "mlp", "--optimizer", "adam", "--ema", "0.9", "--rng", "philox"}, kSteps)},
    {"quantile", kTable, with({"--model", "mlp", "--method", "dpsgd-quantile"}, kSteps)},
    {"adaclip", kTable, with({"--model", "mlp", "--method", "adaclip"}, kSteps)},
    {"dpis",
     kTable,
     {"--model", "mlp", "--method", "dpis", "--batch", "20", "--steps", "12"},
     1e-6},
    {"sentences",
     {"--dataset", "sentences"},
     {"--model", "sentences-lstm", "--batch", "8", "--steps", "3"}},
    {"dp_agd", kTable, {"--model", "logistic", "--method", "dp-agd", "--splits", "6"}},
    {"dp_agd_mini_batch",
     kTable,
     {"--model", "logistic", "--method", "dp-agd", "--splits", "6", "--mini-batch", "100"}},
};

class DeviceTraining : public testing::TestWithParam<TrainingCase> {
 protected:
  DeviceTraining() {
    write_table(folder_.path());
    cases::write_glyphs(folder_.path(), "train", 0, kImages);
    cases::write_glyphs(folder_.path(), "t10k", kImages, 12);
  }

  /// A training from its beginning, in a run folder of this name.
  Ended train(const std::string& out, bool on_cpu, std::size_t killed_at = 0) const {
    const Arguments words = {"train",
                             "--epsilon",
                             "3",
                             "--delta",
                             "1e-5",
                             "--precision",
                             "fp32",
                             "--threads",
                             "1",
                             "--checkpoint-every",
                             "2",
                             "--seed",
                             std::to_string(kTrainingSeed),
                             "--device",
                             "cuda",
                             "--out",
                             out};
    const TrainingCase& c = GetParam();
    return run_as_cudp(folder_.path(), with(with(words, c.data), c.flags),
                       {transcript(out), killed_at, on_cpu});
  }
  /// transcript: whether it goes on, too; without one the device replays what it has recorded.
  Ended resume(const std::string& out, bool transcribed) const {
    return run_as_cudp(folder_.path(), {"train", "--resume", out},
                       {transcribed ? transcript(out) : ""});
  }

  static std::string transcript(const std::string& out) { return out + ".transcript"; }
  std::string file(const std::string& name) const { return content_of(folder_ / name); }
  std::vector<transcript::Record> records(const std::string& out) const {
    return transcript::decode(file(transcript(out)));
  }
  /// The model that was released.
  std::vector<float> weights(const std::string& out) const {
    return decode_safetensors(file(out + "/release/model.safetensors"), "model").values;
  }
  /// What the checker, which draws all noise again, finds in a run.
  std::string findings(const std::string& out) const {
    const verify::Verdict verdict =
        verify::check({.certificate = file(out + "/release/privacy.json"),
                       .ledger = file(out + "/private/ledger"),
                       .transcript = file(transcript(out)),
                       .settings = file(out + "/release/config.toml")});
    EXPECT_GT(verdict.releases, 0u);
    std::string all;
    for (const verify::Finding& f : verdict.findings) all += f.rule + ": " + f.what + "\n";
    return all;
  }
  void expect_same_release(const std::string& a, const std::string& b) const {
    int files = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / (a + "/release"))) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(file(a + "/release/" + name) == file(b + "/release/" + name)) << name;
      ++files;
    }
    EXPECT_GE(files, 3);
  }

  TemporaryFolder folder_;
};

/// Word for word, but for numbers as near as this. Without a tolerance byte for byte.
void expect_same_text(const std::string& a, const std::string& b, double tolerance) {
  if (tolerance == 0.0) {
    EXPECT_EQ(a, b);
    return;
  }
  std::istringstream words_a(a);
  std::istringstream words_b(b);
  std::string x, y;
  while (words_a >> x) {
    ASSERT_TRUE(words_b >> y) << x;
    if (x == "tag") break;                       // the seal of what comes before
    if (x == y || x.starts_with('#')) continue;  // #: a check of the line
    char* end = nullptr;
    const double p = std::strtod(x.c_str(), &end);
    EXPECT_NE(end, x.c_str()) << x << ", " << y;
    EXPECT_NEAR(p, std::strtod(y.c_str(), nullptr), tolerance * std::abs(p));
  }
}

/// The integers that were added to the sums of a record, in units of its grid.
std::vector<double> noise_of(const transcript::Release& r) {
  std::vector<double> noise;
  for (std::size_t j = 0; j < r.sums.size(); ++j)
    noise.push_back(r.values[j] / r.grid - static_cast<double>(r.sums[j]));
  return noise;
}

/// Killed: with its transcript, and without one by what is recorded and replayed.
TEST_P(DeviceTraining, IsTheCpusButForRoundingAndSurvivesAKill) {
  for (const char* const out : {"cpu", "cuda"}) {  // the CPU makes features, if there are any
    const Ended ended = train(out, std::string(out) == "cpu");
    ASSERT_EQ(ended.exit, 0) << out << ": " << ended.err;
    EXPECT_EQ(findings(out), "") << out;
  }
  const auto cpu = records("cpu");
  const auto cuda = records("cuda");
  std::size_t numbers = 0;
  cases::expect_same_records(cpu, cuda, [&](const auto& r, const auto& other) {
    const std::vector<double> want = noise_of(r);
    const std::vector<double> got = noise_of(other);
    for (std::size_t j = 0; j < want.size(); ++j) {
      // A value that is kept as float32 has 24 bits: what the noise was is known to the last of
      // them.
      const double unit = std::max(std::abs(r.values[j]), std::abs(other.values[j])) / r.grid;
      const double unknown = unit >= 0x1p24 ? std::exp2(std::ilogb(unit) - 23) : 0.0;
      EXPECT_TRUE(std::abs(got[j] - want[j]) <= unknown) << r.name << ", " << j;
    }
    numbers += want.size();
  });
  EXPECT_GT(numbers, 0u);

  const std::vector<float> want = weights("cpu");
  const std::vector<float> got = weights("cuda");
  ASSERT_EQ(want.size(), got.size());
  const auto [error, size] = cases::distance(got.data(), want.data(), want.size());
  EXPECT_TRUE(error <= 1e-5 * size) << error << " of " << size;
  for (const char* const same : {"/release/privacy.json", "/private/ledger"})
    expect_same_text(file(std::string("cpu") + same), file(std::string("cuda") + same),
                     GetParam().tolerance);

  for (const bool transcribed : {true, false}) {
    const std::string out = transcribed ? "watched" : "replayed";
    ASSERT_EQ(train(out, false, 3).exit, -SIGKILL);
    const Ended ended = resume(out, transcribed);
    ASSERT_EQ(ended.exit, 0) << ended.err;
    expect_same_release("cuda", out);
    EXPECT_EQ(transcribed ? findings(out) : "", "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTraining, testing::ValuesIn(kTrainings),
                         [](const auto& info) { return std::string(info.param.name); });

/// The presets of small networks in TF32, the default.
class Tf32Presets : public testing::TestWithParam<cases::Tf32Preset> {};

TEST_P(Tf32Presets, AddWhatTheCpuAdds) {
  const TemporaryFolder folder;
  cases::write_first_images(folder.path(), GetParam());
  std::vector<transcript::Record> records[2];
  for (const bool on_cpu : {true, false}) {
    const std::string out = on_cpu ? "cpu" : "cuda";
    const Ended ended = run_as_cudp(folder.path(), cases::tf32_training(GetParam(), out),
                                    {.transcript = out + ".transcript", .on_cpu = on_cpu});
    ASSERT_EQ(ended.exit, 0) << out << ": " << ended.err;
    records[on_cpu] = transcript::decode(content_of(folder.path() / (out + ".transcript")));
  }
  cases::expect_tf32_sums(records[true], records[false]);
}
INSTANTIATE_TEST_SUITE_P(All, Tf32Presets, testing::ValuesIn(cases::kTf32Presets),
                         cases::name_of_preset);

}  // namespace
}  // namespace cudp
