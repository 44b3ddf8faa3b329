// Seeded runs of every method, in processes of their own, held by the checker: an implementation
// that shares nothing with them (privacy/verify/checker.hpp).
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "privacy/verify/checker.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/transcript.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

/// A transcript that ends its process at the n-th step that is released.
class EndingTranscript : public Transcript {
 public:
  EndingTranscript(const SeededKey& key, int file, Ending ending)
      : Transcript(key, file), ending_(ending) {}

  void leaves(const Leaving& what, std::span<std::byte> values) override {
    Transcript::leaves(what, values);
    if (what.purpose == Stream::noise && ++steps_ == ending_.at) ::raise(ending_.signal);
  }

 private:
  Ending ending_;
  std::size_t steps_ = 0;
};

void write_table(const fs::path& folder) {
  write_text(folder / "people.csv.schema.toml", R"(name = "people"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
)");
  std::mt19937_64 random(5);
  std::string text = "age,hours,ill\n";
  for (int i = 0; i < 200; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += std::to_string(age) + "," + std::to_string(hours) +
            (age + hours + random() % 20 > 80 ? ",yes\n" : ",no\n");
  }
  write_text(folder / "people.csv", text);
}

Words with(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class CheckedRun {
 public:
  explicit CheckedRun(std::string device) : device_(std::move(device)) {
    write_table(folder_.path());
  }

  Ended train(const Words& flags, Ending ending = {}) {
    return run(
        with({"train", "--dataset", "people.csv", "--seed", "7", "--delta", "1e-5", "--threads",
              "1", "--out", "run", "--checkpoint-every", "2", "--device", device_},
             flags),
        ending);
  }
  Ended resume(const Words& flags = {}, Ending ending = {}) {
    return run(with({"train", "--resume", "run"}, flags), ending);
  }

  verify::Evidence evidence() const {
    return {.certificate = file("run/release/privacy.json"),
            .ledger = file("run/private/ledger"),
            .transcript = memory_.content(),
            .settings = file("run/release/config.toml")};
  }

 private:
  std::string file(const std::string& name) const { return content_of(folder_ / name); }
  Ended run(const Words& words, Ending ending) {
    TrainConfig config;
    config.seed = 7;
    const SeededKey key(config);
    return run_witnessed(folder_.path(), words, [&] {
      replace_cuda(&emulated_cuda());
      return new EndingTranscript(key, memory_.file(), ending);
    });
  }

  std::string device_;
  TemporaryFolder folder_;
  TranscriptMemory memory_;
};

/// Nothing speaks against the run, with its settings and without.
void expect_honest(verify::Evidence evidence) {
  for (const bool with_settings : {true, false}) {
    if (!with_settings) evidence.settings.clear();
    const verify::Verdict v = verify::check(evidence);
    for (const verify::Finding& f : v.findings) ADD_FAILURE() << f.rule << ": " << f.what;
    EXPECT_GT(v.releases, 0u);
  }
}

struct Case {
  const char* name;
  Words flags;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

const Words kSteps = {"--batch", "40", "--steps", "6", "--epsilon", "3"};
const Words kMlp = {"--model", "mlp"};
const Words kLinear = {"--model", "logistic", "--epsilon", "3"};

const Case kCases[] = {
    {"dpsgd", with(kSteps, kMlp)},
    {"dpsgd_of_public_size", with(with(kSteps, kMlp), {"--size-is-public"})},
    {"per_layer_adam_ema_philox",
     with(with(kSteps, kMlp), {"--clipping", "per-layer", "--optimizer", "adam", "--ema", "0.9",
                               "--rng", "philox", "--size-is-public", "--accountant", "rdp"})},
    {"automatic_adamw",
     with(with(kSteps, kMlp), {"--clipping", "automatic", "--optimizer", "adamw", "--weight-decay",
                               "0.01", "--schedule", "cosine"})},
    {"nesterov_ema_step", with(with(kSteps, kMlp), {"--optimizer", "nesterov", "--ema", "0.3",
                                                    "--schedule", "step", "--decay-every", "1"})},
    {"sgd_warmup_polynomial",
     with(with(kSteps, kMlp), {"--optimizer", "sgd", "--warmup", "3", "--schedule", "polynomial"})},
    {"square_root", with(with(kSteps, kMlp), {"--schedule", "square-root"})},
    {"by_sigma",
     {"--batch", "40", "--steps", "6", "--sigma", "1.5", "--size-is-public", "--accountant", "rdp",
      "--model", "mlp", "--weight-decay", "0.1"}},
    {"all_in_every_batch",
     {"--batch", "200", "--steps", "4", "--epsilon", "3", "--size-is-public", "--accountant", "rdp",
      "--model", "mlp"}},
    {"dpsgd_ts", with(with(kSteps, kMlp), {"--method", "dpsgd-ts"})},
    {"decay", with(with(kSteps, kMlp), {"--method", "dpsgd-decay", "--noise-decay", "0.1",
                                        "--size-is-public", "--accountant", "rdp"})},
    {"decay_fresh", with(with(kSteps, kMlp), {"--method", "dpsgd-decay", "--noise-decay", "0.1",
                                              "--fresh-noise-allowed"})},
    {"quantile", with(with(kSteps, kMlp), {"--method", "dpsgd-quantile"})},
    {"quantile_normalised",
     with(with(kSteps, kMlp),
          {"--method", "dpsgd-quantile", "--quantile-normalise", "--quantile-noise", "0.2",
           "--size-is-public", "--accountant", "rdp"})},
    {"adp",
     with(with(kSteps, kMlp), {"--method", "adp-sgd", "--size-is-public", "--accountant", "rdp"})},
    {"adp_adaptive", with(with(kSteps, kMlp), {"--method", "adp-sgd", "--schedule", "adaptive",
                                               "--adaptive-weight", "7"})},
    {"adaclip", with(with(kSteps, kMlp), {"--method", "adaclip", "--ema", "0.5"})},
    {"ma", with(with(kSteps, kMlp), {"--method", "sgd-ma", "--size-is-public"})},
    {"adv", with(with(kSteps, kMlp), {"--method", "sgd-adv", "--size-is-public"})},
    {"norm_bound", with(with(kSteps, {"--model", "logistic"}), {"--method", "norm-bound"})},
    {"dpis",
     {"--method", "dpis", "--batch", "20", "--steps", "14", "--epsilon", "3", "--model", "mlp"}},
    {"dpis_adaptive_clip",
     {"--method", "dpis", "--batch", "20", "--steps", "25", "--epsilon", "3", "--model", "mlp",
      "--dpis-adaptive-clip", "--size-is-public", "--accountant", "rdp"}},
    {"dp_agd", with(kLinear, {"--method", "dp-agd", "--splits", "6"})},
    {"dp_agd_shrinking", with(kLinear, {"--method", "dp-agd", "--splits", "60", "--step-shrink",
                                        "0.5", "--l2", "0.01"})},
    {"dp_agd_mini_batch_laplace", with(kLinear, {"--method", "dp-agd", "--splits", "6",
                                                 "--mini-batch", "100", "--noisy-min", "laplace"})},
    {"outpert", with(kLinear, {"--method", "outpert"})},
    {"objpert", with(kLinear, {"--method", "objpert"})},
    {"privgene",
     with(kLinear, {"--method", "privgene", "--generations", "8", "--candidates", "20"})},
    {"pca", with(with(kSteps, kMlp), {"--features", "pca", "--feature-dimensions", "2"})},
    {"pca_outpert",
     with(kLinear, {"--method", "outpert", "--features", "pca", "--feature-dimensions", "1"})}};

/// A device and what is trained on it.
using Param = std::tuple<const char*, Case>;
std::string name_of(const testing::TestParamInfo<Param>& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
}

class CheckedRuns : public testing::TestWithParam<Param> {};

TEST_P(CheckedRuns, AreWhatTheirCertificatesSay) {
  const auto& [device, c] = GetParam();
  CheckedRun run(device);
  const Ended ended = run.train(c.flags);
  ASSERT_EQ(ended.exit, 0) << ended.err;
  expect_honest(run.evidence());
}

INSTANTIATE_TEST_SUITE_P(OfEveryMethod, CheckedRuns,
                         testing::Combine(testing::Values("cpu"), testing::ValuesIn(kCases)),
                         name_of);

const Case kKilled[] = {
    {"per_layer_adam_ema", with(with(kSteps, kMlp), {"--clipping", "per-layer", "--optimizer",
                                                     "adam", "--ema", "0.9", "--rng", "philox"})},
    {"quantile", with(with(kSteps, kMlp), {"--method", "dpsgd-quantile"})},
    {"adp_adaptive", with(with(kSteps, kMlp), {"--method", "adp-sgd", "--schedule", "adaptive",
                                               "--fresh-noise-allowed"})},
    {"dpis",
     {"--method", "dpis", "--batch", "20", "--steps", "14", "--epsilon", "3", "--model", "mlp"}},
    {"dp_agd", with(kLinear, {"--method", "dp-agd", "--splits", "6"})},
    {"dpsgd", with(kSteps, kMlp)},
    {"decay", with(with(kSteps, kMlp), {"--method", "dpsgd-decay", "--fresh-noise-allowed"})},
    {"adaclip", with(with(kSteps, kMlp), {"--method", "adaclip", "--ema", "0.5"})},
    {"pca", with(with(kSteps, kMlp), {"--features", "pca", "--feature-dimensions", "2"})}};

class KilledRuns : public testing::TestWithParam<Param> {};

/// Killed, resumed, interrupted and resumed with noise of its own.
TEST_P(KilledRuns, AreWhatTheirCertificatesSay) {
  const auto& [device, c] = GetParam();
  CheckedRun run(device);
  ASSERT_EQ(run.train(c.flags, {SIGKILL, 4}).exit, -SIGKILL);
  expect_honest(run.evidence());
  const Ended interrupted = run.resume({}, {SIGTERM, 2});
  ASSERT_EQ(interrupted.exit, 1) << interrupted.err;
  expect_honest(run.evidence());
  const Ended ended = run.resume({"--fresh-noise"});
  ASSERT_EQ(ended.exit, 0) << ended.err;
  expect_honest(run.evidence());
}
INSTANTIATE_TEST_SUITE_P(OfEveryMethod, KilledRuns,
                         testing::Combine(testing::Values("cpu"), testing::ValuesIn(kKilled)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OnTheEmulator, KilledRuns,
                         testing::Combine(testing::Values("cuda"),
                                          testing::ValuesIn(kKilled, kKilled + 5)),
                         name_of);

/// What was paid for a count of the examples, and nothing else.
TEST(RefusedRuns, AreWhatTheirCertificatesSay) {
  CheckedRun run("cpu");
  const Ended ended = run.train(
      {"--model", "mlp", "--epsilon", "3", "--sigma", "0.5", "--batch", "40", "--steps", "500"});
  ASSERT_EQ(ended.exit, 3) << ended.err;
  expect_honest(run.evidence());
}

}  // namespace
}  // namespace cudp
