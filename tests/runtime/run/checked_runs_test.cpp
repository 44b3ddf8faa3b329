// Seeded runs of every method, in processes of their own, held by the checker: an implementation
// that shares nothing with them (privacy/verify/checker.hpp).
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/verify/checker.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/transcript.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/recomputed_sums.hpp"
#include "tests/support/reference/random.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// A transcript that ends its process at the n-th step that is released.
class EndingTranscript : public Transcript {
 public:
  EndingTranscript(const SeededKey& key, int file, Ending ending)
      : Transcript(key, file), ending_(ending) {}

  void on_release(const ReleasedValue& what, std::span<std::byte> values) override {
    Transcript::on_release(what, values);
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

  // The same columns, where a patient has up to eight rows, of which three are used.
  write_text(folder / "visits.csv.schema.toml", R"(name = "visits"
unit = "who"
max_rows = 3
columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
)");
  text = "who,age,hours,ill\n";
  for (int i = 0; i < 320; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += "p" + std::to_string(random() % 80) + "," + std::to_string(age) + "," +
            std::to_string(hours) + (age + hours + random() % 20 > 80 ? ",yes\n" : ",no\n");
  }
  write_text(folder / "visits.csv", text);

  // The same rows with a number to predict.
  write_text(folder / "stays.csv.schema.toml", R"(name = "stays"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = "days", kind = "target", min = 0, max = 30},
]
)");
  text = "age,hours,days\n";
  for (int i = 0; i < 200; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += std::to_string(age) + "," + std::to_string(hours) + "," +
            std::to_string((age + hours) / 4 + random() % 9) + "\n";
  }
  write_text(folder / "stays.csv", text);
}

class CheckedRun {
 public:
  explicit CheckedRun(std::string device) : device_(std::move(device)) {
    write_table(folder_.path());
  }

  void write(const std::string& file, const std::string& text) const {
    write_text(folder_ / file, text);
  }
  Ended train(const Arguments& flags, Ending ending = {}) {
    return run(
        with({"train", "--quiet", "--dataset", "people.csv", "--seed", "7", "--delta", "1e-5",
              "--threads", "1", "--out", "run", "--checkpoint-every", "2", "--device", device_},
             flags),
        ending);
  }
  Ended resume(const Arguments& flags = {}, Ending ending = {}) {
    return run(with({"train", "--quiet", "--resume", "run"}, flags), ending);
  }

  /// Of the oracle that makes the gradients again.
  Recomputed recomputed() const {
    const fs::path back = fs::current_path();
    fs::current_path(folder_.path());
    const Recomputed found = recompute_sums("run", memory_.content());
    fs::current_path(back);
    return found;
  }

  std::vector<float> released_weights() const {
    return decode_safetensors(file("run/release/model.safetensors"), "model").values;
  }

  verify::Evidence evidence() const {
    return {.certificate = file("run/release/privacy.json"),
            .ledger = file("run/private/ledger"),
            .transcript = memory_.content(),
            .settings = file("run/release/config.toml")};
  }

 private:
  std::string file(const std::string& name) const { return content_of(folder_ / name); }
  Ended run(const Arguments& words, Ending ending) {
    TrainConfig config;
    config.seed = 7;
    const SeededKey key(config);
    return run_observed(folder_.path(), words, [&] {
      replace_cuda(&emulated_cuda());
      return new EndingTranscript(key, memory_.file(), ending);
    });
  }

  std::string device_;
  TemporaryFolder folder_;
  TranscriptMemory memory_;
};

/// Nothing speaks against the run, with its settings and without.
void expect_honest(const CheckedRun& run) {
  verify::Evidence evidence = run.evidence();
  for (const bool with_settings : {true, false}) {
    if (!with_settings) evidence.settings.clear();
    const verify::Verdict v = verify::check(evidence);
    for (const verify::Finding& f : v.findings) ADD_FAILURE() << f.rule << ": " << f.what;
    EXPECT_GT(v.releases, 0u);
  }
  EXPECT_EQ(run.recomputed().fault, "");
}

struct Case {
  const char* name;
  Arguments flags;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

const Arguments kSteps = {"--batch", "40", "--steps", "6", "--epsilon", "3"};
const Arguments kEpochs = {"--batch",   "40", "--epochs",   "3",
                           "--epsilon", "3",  "--sampling", "allocation"};
const Arguments kMlp = {"--model", "mlp"};
const Arguments kOfOne = {"--model",   "mlp", "--batch",      "1",   "--steps",         "20",
                          "--epsilon", "3",   "--accountant", "rdp", "--size-is-public"};
const Arguments kWeights = {"--class-weights", "1,5"};
const Arguments kTarget = {"--dataset", "stays.csv"};
const Arguments kUnits = {"--dataset", "visits.csv"};
const Arguments kHoldout = {"--holdout",       "0.3", "--holdout-epsilon", "3",
                            "--holdout-delta", "1e-6"};
const Arguments kPca = {"--features", "pca", "--feature-dimensions", "2"};
const Arguments kLinear = {"--model", "logistic", "--epsilon", "3"};

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
    // Of one example the sum is no longer than the stated sensitivity.
    {"batches_of_one", with(kOfOne, {"--clip", "0.01"})},
    {"batches_of_one_per_layer", with(kOfOne, {"--clip", "0.01", "--clipping", "per-layer"})},
    {"batches_of_one_automatic", with(kOfOne, {"--clip", "0.01", "--clipping", "automatic"})},
    {"batches_of_one_quantile",
     with(kOfOne, {"--method", "dpsgd-quantile", "--clip", "0.01", "--quantile-target", "0.1"})},
    {"batches_of_one_adaclip", with(kOfOne, {"--method", "adaclip"})},
    {"allocation", with(kEpochs, kMlp)},
    {"allocation_sigma",
     {"--batch", "30", "--epochs", "2", "--sigma", "2", "--size-is-public", "--sampling",
      "allocation", "--model", "mlp", "--rng", "philox"}},
    {"allocation_quantile", with(kEpochs, {"--method", "dpsgd-quantile", "--model", "mlp"})},
    {"allocation_adaclip", with(kEpochs, {"--method", "adaclip", "--model", "mlp"})},
    {"allocation_holdout", with(kEpochs, with(kMlp, kHoldout))},
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
    // An example of the first class counts a fifth of one of the second.
    {"weights", with(with(kSteps, kMlp), kWeights)},
    {"weights_of_codes", with(with(kSteps, {"--model", "logistic"}), kWeights)},
    {"weights_per_layer", with(with(kSteps, kMlp), with(kWeights, {"--clipping", "per-layer"}))},
    {"weights_automatic", with(with(kSteps, kMlp), with(kWeights, {"--clipping", "automatic"}))},
    {"weights_of_one", with(kOfOne, with(kWeights, {"--clip", "0.01"}))},
    {"weights_quantile", with(with(kSteps, kMlp), with(kWeights, {"--method", "dpsgd-quantile"}))},
    {"weights_decay", with(with(kSteps, kMlp), with(kWeights, {"--method", "dpsgd-decay"}))},
    {"weights_ts", with(with(kSteps, kMlp), with(kWeights, {"--method", "dpsgd-ts"}))},
    {"weights_adp", with(with(kSteps, kMlp), with(kWeights, {"--method", "adp-sgd"}))},
    {"weights_adaclip", with(with(kSteps, kMlp), with(kWeights, {"--method", "adaclip"}))},
    {"weights_norm_bound",
     with(with(kSteps, {"--model", "logistic"}), with(kWeights, {"--method", "norm-bound"}))},
    {"weights_dpis", with({"--method", "dpis", "--batch", "20", "--steps", "14", "--epsilon", "3",
                           "--model", "mlp"},
                          kWeights)},
    {"weights_dp_agd", with(kLinear, with(kWeights, {"--method", "dp-agd", "--splits", "6"}))},
    {"weights_outpert", with(kLinear, with(kWeights, {"--method", "outpert"}))},
    {"weights_objpert", with(kLinear, with(kWeights, {"--method", "objpert"}))},
    {"target", with(kSteps, kTarget)},
    {"target_huber", with(with(kSteps, kTarget), {"--loss", "huber", "--huber-delta", "2"})},
    {"target_mlp", with(with(kSteps, kMlp), kTarget)},
    {"target_per_layer", with(with(kSteps, kMlp), with(kTarget, {"--clipping", "per-layer"}))},
    {"target_automatic", with(kSteps, with(kTarget, {"--clipping", "automatic"}))},
    {"target_quantile", with(kSteps, with(kTarget, {"--method", "dpsgd-quantile"}))},
    {"target_adaclip", with(with(kSteps, kMlp), with(kTarget, {"--method", "adaclip"}))},
    {"target_dpis",
     with({"--method", "dpis", "--batch", "20", "--steps", "14", "--epsilon", "3"}, kTarget)},
    {"target_of_one", with(kOfOne, with(kTarget, {"--clip", "0.01"}))},
    {"holdout", with(with(kSteps, kMlp), kHoldout)},
    {"holdout_units", with(with(kSteps, kMlp), with(kUnits, kHoldout))},
    {"holdout_target", with(kSteps, with(kTarget, kHoldout))},
    {"holdout_dpis", with({"--method", "dpis", "--batch", "20", "--steps", "14", "--epsilon", "3",
                           "--model", "mlp"},
                          kHoldout)},
    {"holdout_dp_agd",
     with(kLinear, with(kHoldout, {"--method", "dp-agd", "--splits", "6", "--mini-batch", "100"}))},
    {"holdout_outpert", with(kLinear, with(kHoldout, {"--method", "outpert"}))},
    {"holdout_pca", with(kSteps, with(kHoldout, kPca))},
    {"holdout_pca_dpis",
     with({"--method", "dpis", "--batch", "20", "--steps", "14", "--epsilon", "3"},
          with(kHoldout, kPca))},
    {"holdout_pca_units", with(kSteps, with(kUnits, with(kHoldout, kPca)))},
    {"holdout_pca_normalised",
     with(kSteps, with(kHoldout, with(kPca, {"--normalise", "unit", "--feature-whiten"})))},
    {"holdout_pca_target", with(kSteps, with(kTarget, with(kHoldout, kPca)))},
    {"units", with(with(kSteps, kMlp), kUnits)},
    {"units_of_public_size", with(with(kSteps, kMlp), with(kUnits, {"--size-is-public"}))},
    {"units_by_sigma", with({"--batch", "40", "--steps", "6", "--sigma", "3", "--size-is-public",
                             "--accountant", "rdp", "--model", "mlp"},
                            kUnits)},
    {"units_decay", with(with(kSteps, kMlp), with(kUnits, {"--method", "dpsgd-decay"}))},
    {"units_quantile", with(with(kSteps, kMlp), with(kUnits, {"--method", "dpsgd-quantile"}))},
    {"units_adp_adaptive",
     with(with(kSteps, kMlp), with(kUnits, {"--method", "adp-sgd", "--schedule", "adaptive"}))},
    {"units_adaclip", with(with(kSteps, kMlp), with(kUnits, {"--method", "adaclip"}))},
    {"units_ma", with(with(kSteps, kMlp), with(kUnits, {"--method", "sgd-ma"}))},
    {"units_dpis", with({"--method", "dpis", "--batch", "20", "--steps", "14", "--epsilon", "20",
                         "--model", "mlp"},
                        kUnits)},
    {"units_dp_agd", with(kLinear, with(kUnits, {"--method", "dp-agd", "--splits", "6"}))},
    {"units_dp_agd_laplace",
     with(kLinear, with(kUnits, {"--method", "dp-agd", "--splits", "6", "--noisy-min", "laplace",
                                 "--mini-batch", "100"}))},
    {"units_outpert", with(kLinear, with(kUnits, {"--method", "outpert"}))},
    {"units_privgene", with(kLinear, with(kUnits, {"--method", "privgene", "--generations", "8",
                                                   "--candidates", "20"}))},
    {"units_pca",
     with(with(kSteps, kMlp), with(kUnits, {"--features", "pca", "--feature-dimensions", "2"}))},
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
  expect_honest(run);
  // Choices among models have neither gradients nor a minimum.
  EXPECT_EQ(run.recomputed().sums > 0, !std::string(c.name).ends_with("privgene"));
}

INSTANTIATE_TEST_SUITE_P(OfEveryMethod, CheckedRuns,
                         testing::Combine(testing::Values("cpu"), testing::ValuesIn(kCases)),
                         name_of);

const Case kKilled[] = {
    {"allocation", with(kEpochs, with(kMlp, {"--optimizer", "adam"}))},
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
    {"pca", with(with(kSteps, kMlp), {"--features", "pca", "--feature-dimensions", "2"})},
    {"holdout", with(with(kSteps, kMlp), kHoldout)},
    {"units", with(with(kSteps, kMlp), kUnits)},
    {"units_dpis", with({"--method", "dpis", "--batch", "20", "--steps", "14", "--epsilon", "20",
                         "--model", "mlp"},
                        kUnits)},
    {"units_dp_agd", with(kLinear, with(kUnits, {"--method", "dp-agd", "--splits", "6"}))}};

class KilledRuns : public testing::TestWithParam<Param> {};

/// Killed, resumed, interrupted and resumed with noise of its own.
TEST_P(KilledRuns, AreWhatTheirCertificatesSay) {
  const auto& [device, c] = GetParam();
  CheckedRun run(device);
  ASSERT_EQ(run.train(c.flags, {SIGKILL, 4}).exit, -SIGKILL);
  expect_honest(run);
  const Ended interrupted = run.resume({}, {SIGTERM, 2});
  ASSERT_EQ(interrupted.exit, 75) << interrupted.err;
  expect_honest(run);
  const Ended ended = run.resume({"--fresh-noise"});
  ASSERT_EQ(ended.exit, 0) << ended.err;
  expect_honest(run);
}
INSTANTIATE_TEST_SUITE_P(OfEveryMethod, KilledRuns,
                         testing::Combine(testing::Values("cpu"), testing::ValuesIn(kKilled)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OnTheEmulator, KilledRuns,
                         testing::Combine(testing::Values("cuda"),
                                          testing::ValuesIn(kKilled, kKilled + 6)),
                         name_of);

const Arguments kFew = {"--batch", "1", "--steps", "6", "--epsilon", "3"};
const Case kOfNoRows[] = {
    {"dpsgd", with(kFew, kMlp)},
    {"logistic", kFew},
    {"quantile", with(kFew, {"--method", "dpsgd-quantile"})},
    {"adaclip", with(kFew, with(kMlp, {"--method", "adaclip"}))},
    {"adp_adaptive", with(kFew, {"--method", "adp-sgd", "--schedule", "adaptive"})},
    {"dpis", with(kFew, with(kMlp, {"--method", "dpis", "--dpis-total-noise", "1"}))},
    {"dp_agd", with(kLinear, {"--method", "dp-agd", "--splits", "6"})}};

class RunsOfNoRows : public testing::TestWithParam<Param> {};

/// A table without a row trains as one of a single row does: of its sums nothing is left but noise.
TEST_P(RunsOfNoRows, AreWhatTheirCertificatesSay) {
  const auto& [device, c] = GetParam();
  CheckedRun run(device);
  run.write("people.csv", "age,hours,ill\n");
  const Ended ended = run.train(c.flags);
  ASSERT_EQ(ended.exit, 0) << ended.err;
  expect_honest(run);
  // DPIS has no candidates then, and no sum to make again.
  const bool has_sums = std::string(c.name) != "dpis";
  EXPECT_EQ(run.recomputed().sums > 0u, has_sums);
}
INSTANTIATE_TEST_SUITE_P(OfEveryMethod, RunsOfNoRows,
                         testing::Combine(testing::Values("cpu", "cuda"),
                                          testing::ValuesIn(kOfNoRows)),
                         name_of);

/// What was paid for a count of the examples, and nothing else.
TEST(RefusedRuns, AreWhatTheirCertificatesSay) {
  CheckedRun run("cpu");
  const Ended ended =
      run.train({"--model", "mlp", "--epsilon", "3", "--batch", "4000", "--steps", "500"});
  ASSERT_EQ(ended.exit, 2) << ended.err;
  expect_honest(run);
}

/// Whoever knows the seed: from it, the settings, public numbers of the certificate and the sums he
/// has the weights of a run, to the last bit. Generators, Box-Muller and optimizers of his own.
struct Attack {
  const char* name;
  std::string optimizer;
  Generator generator;
  float momentum = 0.9f;
  float decay = 0.0f;
  double ema = 0.0;
  Arguments flags = {};
};

std::vector<float> weights_from_seed(const Attack& a, const verify::Evidence& evidence) {
  const auto certificate = nlohmann::json::parse(evidence.certificate);
  RandomKey seed{};
  seed.words[0] = 7;
  const auto block = reference::chacha20_block(seed, 0, {0x64656573, 0, 0});  // "seed"
  RandomKey key{};
  std::copy_n(block.begin(), 8, std::begin(key.words));
  const double grid = certificate["noise"]["grid"];
  const double stated = certificate["noise_std"];
  auto noise_std = static_cast<float>(stated);
  if (static_cast<double>(noise_std) < stated) noise_std = std::nextafterf(noise_std, HUGE_VALF);
  const auto share = static_cast<float>(1.0 / certificate["expected_batch"].get<double>());

  std::vector<float> theta, moment1, moment2, average;
  for (const transcript::Record& record : transcript::decode(evidence.transcript)) {
    if (const auto* state = std::get_if<transcript::State>(&record)) {
      // What it began with follows from the seed, too: uniform numbers, and biases of 0.
      theta.resize(state->parameters.size());
      const RandomStream words{a.generator, key, Stream::initial_weights, 0};
      const std::size_t inputs = 2, hidden = 1000, outputs = 1;
      if (theta.size() > inputs + 1)
        for (std::size_t j = 0; j < theta.size(); ++j) {
          const bool first = j < inputs * hidden;
          const std::size_t second = inputs * hidden + hidden;
          if (!first && (j < second || j >= second + hidden * outputs)) continue;
          const double limit = std::sqrt(6.0 / static_cast<double>(first ? inputs : hidden));
          theta[j] =
              static_cast<float>(limit * ((reference::word(words, j) + 0.5) * 0x1p-31 - 1.0));
        }
      moment1.assign(theta.size(), 0.0f);
      moment2.assign(theta.size(), 0.0f);
      average = theta;
    }
    const auto* release = std::get_if<transcript::Release>(&record);
    if (release == nullptr || static_cast<Stream>(release->stream) != Stream::noise) continue;
    const RandomStream noise{a.generator, key, Stream::noise, release->step};
    const double t = static_cast<double>(release->step) + 1.0;
    const float rate = 0.5f, beta1 = 0.9f, beta2 = 0.999f;
    const auto bias1 = static_cast<float>(1.0 / (1.0 - std::pow(0.9, t)));
    const auto bias2 = static_cast<float>(1.0 / (1.0 - std::pow(0.999, t)));
    const auto memory = static_cast<float>(std::fmin(a.ema, t / (t + 9.0)));
    for (std::size_t j = 0; j < theta.size(); ++j) {
      const long double z = reference::unrounded_normal(noise, j);
      const std::int64_t k = std::llrint(static_cast<long double>(noise_std) / grid * z);
      float g = static_cast<float>(grid * static_cast<double>(release->sums[j] + k)) * share;
      if (a.optimizer != "adamw") g = std::fma(a.decay, theta[j], g);
      if (a.optimizer == "sgd") {
        theta[j] = std::fma(-rate, g, theta[j]);
      } else if (a.optimizer == "momentum" || a.optimizer == "nesterov") {
        moment1[j] = std::fma(a.momentum, moment1[j], g);
        const float along =
            a.optimizer == "momentum" ? moment1[j] : std::fma(a.momentum, moment1[j], g);
        theta[j] = std::fma(-rate, along, theta[j]);
      } else {
        const float first = beta1 * moment1[j];
        const float second = beta2 * moment2[j];
        const float square = g * g;
        moment1[j] = std::fma(1.0f - beta1, g, first);
        moment2[j] = std::fma(1.0f - beta2, square, second);
        const float root = std::sqrt(moment2[j] * bias2);
        const float direction = moment1[j] * bias1 / (root + 1e-8f);
        if (a.optimizer == "adamw") theta[j] = std::fma(-rate * a.decay, theta[j], theta[j]);
        theta[j] = std::fma(-rate, direction, theta[j]);
      }
      average[j] = std::fma(memory, average[j] - theta[j], theta[j]);
    }
  }
  return a.ema > 0.0 ? average : theta;
}

TEST(SeededRuns, HideNothingFromWhoeverKnowsTheSeed) {
  const Attack kAttacks[] = {
      {"sgd", "sgd", Generator::chacha20},
      {"momentum", "momentum", Generator::chacha20, 0.9f, 0.0f, 0.0, {"--momentum", "0.9"}},
      {"linear",
       "momentum",
       Generator::philox,
       0.9f,
       0.0f,
       0.0,
       {"--model", "logistic", "--ema", "0"}},
      {"nesterov, average", "nesterov", Generator::chacha20, 0.9f, 0.0f, 0.9},
      {"adam", "adam", Generator::philox},
      {"adam, average, per layer",
       "adam",
       Generator::chacha20,
       0.9f,
       0.0f,
       0.5,
       {"--clipping", "per-layer"}},
      {"adamw", "adamw", Generator::chacha20, 0.9f, 0.01f},
      {"decay, automatic", "sgd", Generator::philox, 0.9f, 0.1f, 0.0, {"--clipping", "automatic"}},
      {"average", "momentum", Generator::chacha20, 0.5f, 0.01f, 0.3, {"--momentum", "0.5"}}};
  std::size_t weights = 0;
  for (const Attack& a : kAttacks) {
    SCOPED_TRACE(a.name);
    Arguments flags = {"--batch",
                       "40",
                       "--steps",
                       "6",
                       "--epsilon",
                       "3",
                       "--size-is-public",
                       "--accountant",
                       "rdp",
                       "--lr",
                       "0.5",
                       "--optimizer",
                       a.optimizer,
                       "--rng",
                       a.generator == Generator::philox ? "philox" : "chacha20"};
    if (std::ranges::find(a.flags, "--model") == a.flags.end())
      flags = with(flags, {"--model", "mlp"});
    if (a.decay > 0.0f) flags = with(flags, {"--weight-decay", std::to_string(a.decay)});
    if (a.ema > 0.0) flags = with(flags, {"--ema", std::to_string(a.ema)});
    CheckedRun run("cpu");
    const Ended ended = run.train(with(flags, a.flags));
    ASSERT_EQ(ended.exit, 0) << ended.err;
    const std::vector<float> expected = weights_from_seed(a, run.evidence());
    const std::vector<float> released = run.released_weights();
    ASSERT_EQ(released.size(), expected.size());
    std::size_t same = 0;
    for (std::size_t j = 0; j < expected.size(); ++j) same += released[j] == expected[j] ? 1 : 0;
    EXPECT_EQ(same, expected.size());
    weights += same;
  }
  std::cout << weights << " weights of nine runs, made again from the seed, to the last bit"
            << std::endl;
}

}  // namespace
}  // namespace cudp
