// What a seeded run writes down of itself, in processes of its own: which records, in which order,
// on the CPU and on the emulated CUDA engine, over a kill; and who may see them.
#include "runtime/gate/transcript.hpp"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <regex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "privacy/verify/checker.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/gate.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_books.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRows = 200;

SeededKey proof() {
  TrainConfig config;
  config.seed = 7;
  return SeededKey(config);
}

/// A transcript that ends its process at the n-th step that is released.
class EndingTranscript : public Transcript {
 public:
  EndingTranscript(int file, Ending ending) : Transcript(proof(), file), ending_(ending) {}

  void on_release(const ReleasedValue& what, std::span<std::byte> values) override {
    Transcript::on_release(what, values);
    if (what.purpose == Stream::noise && ++steps_ == ending_.at) ::raise(ending_.signal);
  }

 private:
  Ending ending_;
  std::size_t steps_ = 0;
};

void write_table(const fs::path& folder, unsigned seed) {
  write_text(folder / "people.csv.schema.toml", R"(name = "people"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90},
  {name = "hours", kind = "numeric", min = 0, max = 40},
  {name = "ill", kind = "label", values = ["no", "yes"]},
]
)");
  std::mt19937_64 random(seed);
  std::string text = "age,hours,ill\n";
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += std::to_string(age) + "," + std::to_string(hours) +
            (age + hours + random() % 20 > 80 ? ",yes\n" : ",no\n");
  }
  write_text(folder / "people.csv", text);
}

const Arguments kTrain = {"train", "--dataset", "people.csv", "--epsilon",
                          "3",     "--delta",   "1e-5",       "--threads",
                          "1",     "--out",     "run",        "--checkpoint-every",
                          "2",     "--model",   "logistic",   "--quiet"};
const Arguments kResume = {"train", "--quiet", "--resume", "run"};
const Arguments kSixSteps = {"--batch", "40", "--steps", "6"};
const Arguments kSteps = with(kSixSteps, {"--ema", "0"});

class Observed {
 public:
  explicit Observed(std::string device) : device_(std::move(device)) {
    write_table(folder_.path(), 5);
  }

  Ended run(const Arguments& words,
            const std::function<ReleaseObserver*()>& make_release_observer) {
    return run_observed(folder_.path(), words, [&] {
      replace_cuda(&emulated_cuda());
      return make_release_observer();
    });
  }
  Ended train(const Arguments& flags, Ending ending = {}) {
    const Arguments seeded = {"--seed", "7", "--device", device_};
    return run(with(with(kTrain, seeded), flags),
               [&] { return new EndingTranscript(memory_.file(), ending); });
  }
  Ended resume(const Arguments& flags = {}) {
    return run(with(kResume, flags), [&] { return new EndingTranscript(memory_.file(), {}); });
  }

  /// What the checker finds in the run as it is now; empty where it finds nothing.
  std::string findings() const { return findings(content()); }
  std::string findings(const std::string& transcript) const {
    const verify::Verdict verdict = verify::check({.certificate = file("run/release/privacy.json"),
                                                   .ledger = file("run/private/ledger"),
                                                   .transcript = transcript,
                                                   .settings = file("run/release/config.toml")});
    EXPECT_GT(verdict.releases, 0u);
    std::string all;
    for (const verify::Finding& f : verdict.findings) all += f.rule + ": " + f.what + "\n";
    return all;
  }

  std::string file(const std::string& name) const { return content_of(folder_ / name); }
  fs::path path() const { return folder_.path(); }
  std::string content() const { return memory_.content(); }
  std::vector<transcript::Record> records() const { return transcript::decode(memory_.content()); }

 private:
  TemporaryFolder folder_;
  TranscriptMemory memory_;
  std::string device_;
};

/// A letter for each record: B(egin), S(tate), D(rawn), U(pdate), and of what left: G of an
/// engine's or a gradient's sum, R of other sums, C of choices.
std::string order_of(const std::vector<transcript::Record>& records) {
  std::string order;
  for (const transcript::Record& record : records) {
    if (const auto* r = std::get_if<transcript::Release>(&record))
      order += r->sums.empty()                                          ? 'C'
               : r->stream == static_cast<std::uint32_t>(Stream::noise) ? 'G'
                                                                        : 'R';
    else
      order += "BSD?U"[record.index()];
  }
  return order;
}

template <class T>
std::vector<T> all_of(const std::vector<transcript::Record>& records) {
  std::vector<T> all;
  for (const transcript::Record& record : records)
    if (const auto* r = std::get_if<T>(&record)) all.push_back(*r);
  return all;
}

struct Case {
  const char* name;
  Arguments flags;
  const char* order;  ///< a regular expression
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

const Case kCases[] = {
    {"dpsgd", kSteps, "BRS(DGU){6}"},
    {"dpsgd_of_public_size", with(kSteps, {"--size-is-public"}), "BS(DGU){6}"},
    {"quantile", with(kSteps, {"--method", "dpsgd-quantile"}), "BRS(DGUR){6}"},
    {"adam_ema", with(kSixSteps, {"--optimizer", "adam", "--ema", "0.9", "--rng", "philox"}),
     "BRS(DGU){6}"},
    {"adp_adaptive", with(kSteps, {"--method", "adp-sgd", "--schedule", "adaptive"}),
     "BRS(DGU){6}"},
    {"adaclip", with(kSteps, {"--method", "adaclip"}), "BRS(DGU){6}"},
    {"dpis",
     {"--method", "dpis", "--batch", "40", "--steps", "12", "--ema", "0"},
     "BRS(R(DGU){1,11})+"},
    {"dp_agd", {"--method", "dp-agd", "--splits", "6"}, "BRS(G+(CG)*CU)+(G?(CG)*C?)?"},
    {"dp_agd_mini_batch",
     {"--method", "dp-agd", "--splits", "6", "--mini-batch", "100"},
     "BRS(DG(CG)*CU)+(DG?(CG)*C?)?"},
    {"features", with(kSteps, {"--features", "pca", "--feature-dimensions", "2"}), "BRR+S(DGU){6}"},
};

class EveryRecord : public testing::TestWithParam<std::tuple<const char*, Case>> {};

TEST_P(EveryRecord, StandsInItsOrder) {
  const auto& [device, c] = GetParam();
  Observed run(device);
  const Ended ended = run.train(c.flags);
  ASSERT_EQ(ended.exit, 0) << ended.err;
  const std::vector<transcript::Record> records = run.records();
  const std::string order = order_of(records);
  EXPECT_TRUE(std::regex_match(order, std::regex(c.order))) << order;

  const auto& begin = std::get<transcript::Begin>(records.at(0));
  EXPECT_EQ(begin.examples, kRows);
  EXPECT_EQ(begin.step, 0u);
  EXPECT_EQ(begin.generator, std::string(c.name) == "adam_ema" ? "philox" : "chacha20");
  const RandomKey key = key_from_seed(7);
  EXPECT_TRUE(std::equal(begin.key.begin(), begin.key.end(), key.words));

  std::uint64_t charged = 0;
  for (const transcript::Release& r : all_of<transcript::Release>(records)) {
    EXPECT_GE(r.charged, charged);
    charged = r.charged;
    EXPECT_GT(r.charged, 0u);
    if (r.sums.empty()) continue;
    ASSERT_EQ(r.sums.size(), r.values.size());
    double square = 0.0;
    for (std::size_t j = 0; j < r.sums.size(); ++j) {
      const double noise = r.values[j] - r.grid * static_cast<double>(r.sums[j]);
      EXPECT_NE(noise, 0.0);
      square += noise * noise;
    }
    // Of d numbers: more than 9 d has probability below 1e-2 for one, and there are few seeds.
    EXPECT_LT(square, 25.0 * r.noise_std * r.noise_std * static_cast<double>(r.sums.size()));
  }
  for (const transcript::Batch& b : all_of<transcript::Batch>(records)) {
    EXPECT_EQ(b.threshold == 0, std::string(c.name) == "dpis");
    EXPECT_TRUE(std::is_sorted(b.examples.begin(), b.examples.end()));
    EXPECT_TRUE(b.examples.empty() || b.examples.back() < kRows);
  }
  const auto updates = all_of<transcript::Update>(records);
  const auto certificate = nlohmann::json::parse(run.file("run/release/privacy.json"));
  EXPECT_EQ(updates.size(), certificate.at("steps").get<std::size_t>());
  for (std::size_t i = 0; i < updates.size(); ++i) EXPECT_EQ(updates[i].step, i);
  // What was released is what the last update left.
  const TensorFile model = decode_safetensors(run.file("run/release/model.safetensors"), "model");
  const transcript::Update& last = updates.back();
  const std::vector<float>& left = last.average.empty() ? last.parameters : last.average;
  ASSERT_GE(model.values.size(), left.size());  // what features rest on comes after
  EXPECT_TRUE(std::equal(left.begin(), left.end(), model.values.begin()));
  EXPECT_EQ(last.average.empty(), std::string(c.name) != "adam_ema");
  EXPECT_EQ(run.findings(), "");
}
INSTANTIATE_TEST_SUITE_P(OnEveryEngine, EveryRecord,
                         testing::Combine(testing::Values("cpu", "cuda"),
                                          testing::ValuesIn(kCases)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param).name;
                         });

/// Choices and releases of other noise, of methods that take no steps.
TEST(Transcript, HasTheReleasesOfLinearMethods) {
  const Case cases[] = {
      {"outpert", {"--method", "outpert"}, "BRSG"},
      {"objpert", {"--method", "objpert"}, "BRSC"},
      {"privgene", {"--method", "privgene", "--generations", "8", "--candidates", "20"}, "BRSC{8}"},
  };
  for (const Case& c : cases) {
    Observed run("cpu");
    const Ended ended = run.train(c.flags);
    ASSERT_EQ(ended.exit, 0) << c.name << ": " << ended.err;
    const std::string order = order_of(run.records());
    EXPECT_TRUE(std::regex_match(order, std::regex(c.order))) << c.name << ": " << order;
    EXPECT_EQ(run.findings(), "") << c.name;
  }
}

/// What the checker says where `change` is made to one record of a run.
template <class T>
std::string convicted(const Observed& run, const std::function<void(T&)>& change) {
  std::string transcript;
  std::size_t at = 0;
  for (transcript::Record record : run.records()) {
    if (auto* const r = std::get_if<T>(&record); r != nullptr && ++at == 2) change(*r);
    transcript += transcript::encode(record);
  }
  return run.findings(transcript);
}

/// The checker redoes its steps; the tests of other methods are those of the checker itself.
TEST(Transcript, ConvictsChangedStepsOfDpAgd) {
  Observed run("cpu");
  ASSERT_EQ(run.train({"--method", "dp-agd", "--splits", "6", "--l2", "0.01"}).exit, 0);
  EXPECT_EQ(run.findings(), "");
  using transcript::Update;
  const auto says = [](const std::string& findings, const char* what) {
    EXPECT_NE(findings.find(what), std::string::npos) << findings;
  };
  says(convicted<Update>(run, [](Update& u) { u.parameters[1] *= 1.0f + 0x1p-20f; }),
       "update: step 1: parameter 1");
  says(convicted<Update>(run, [](Update& u) { u.learning_rate *= 0.9; }),
       "update: step 1: step size");
  says(convicted<Update>(run, [](Update& u) { u.weight_decay *= 1.1; }),
       "update: step 1, weight of the regulariser");
}

class OnEveryEngine : public testing::TestWithParam<const char*> {};

TEST_P(OnEveryEngine, AKilledRunsTranscriptGoesOn) {
  Observed run(GetParam());
  EXPECT_EQ(run.train(with(kSteps, {"--optimizer", "adam"}), {SIGKILL, 4}).exit, -SIGKILL);
  const std::vector<transcript::Record> before = run.records();
  EXPECT_EQ(order_of(before), "BRSDGUDGUDGUDG");
  const Ended ended = run.resume();
  ASSERT_EQ(ended.exit, 0) << ended.err;
  const std::vector<transcript::Record> all = run.records();
  EXPECT_EQ(order_of(all), "BRSDGUDGUDGUDGBSDGUDGUDGUDGU");

  const auto begins = all_of<transcript::Begin>(all);
  EXPECT_EQ(begins[1].step, 2u);
  EXPECT_EQ(begins[1].key, begins[0].key);
  const transcript::State state = all_of<transcript::State>(all)[1];
  const transcript::Update at_checkpoint = all_of<transcript::Update>(all)[1];
  EXPECT_EQ(state.parameters, at_checkpoint.parameters);
  EXPECT_EQ(state.moment1, at_checkpoint.moment1);
  EXPECT_EQ(state.moment2, at_checkpoint.moment2);
  // The same noise on the same sums, and paid once.
  const auto releases = all_of<transcript::Release>(all);
  EXPECT_EQ(releases[3], releases[5]);
  EXPECT_EQ(releases[4], releases[6]);
  EXPECT_EQ(run.findings(), "");
}

/// Repeated steps have another key, and the ledger was charged for them before.
TEST_P(OnEveryEngine, FreshNoiseIsSeenWithItsKey) {
  Observed run(GetParam());
  EXPECT_EQ(run.train(kSteps, {SIGKILL, 4}).exit, -SIGKILL);
  const Ended ended = run.resume({"--fresh-noise"});
  ASSERT_EQ(ended.exit, 0) << ended.err;
  const std::vector<transcript::Record> all = run.records();
  const auto begins = all_of<transcript::Begin>(all);
  ASSERT_EQ(begins.size(), 2u);
  EXPECT_NE(begins[0].key, begins[1].key);
  const auto releases = all_of<transcript::Release>(all);
  EXPECT_EQ(releases[5].step, releases[3].step);
  EXPECT_NE(releases[5].values, releases[3].values);
  EXPECT_GT(releases[5].charged, releases[4].charged);
  EXPECT_EQ(run.findings(), "");
}

TEST_P(OnEveryEngine, NothingComesOutOtherwiseWhereOneIsWritten) {
  for (const Arguments& flags :
       {Arguments{"--optimizer", "adam", "--ema", "0.9"}, Arguments{"--method", "dpsgd-quantile"},
        Arguments{"--method", "adp-sgd", "--schedule", "adaptive"}}) {
    Observed seen(GetParam());
    Observed alone(GetParam());
    ASSERT_EQ(seen.train(with(kSixSteps, flags)).exit, 0);
    const Arguments seeded = {"--seed", "7", "--device", GetParam()};
    ASSERT_EQ(
        alone.run(with(with(with(kTrain, seeded), kSixSteps), flags), [] { return nullptr; }).exit,
        0);
    for (const char* name : {"run/release/model.safetensors", "run/release/privacy.json"})
      EXPECT_TRUE(seen.file(name) == alone.file(name)) << name;
    EXPECT_EQ(alone.content(), "");
  }
}

/// As tests/audit/non_interference_test.cpp, which runs on the CPU.
TEST_P(OnEveryEngine, AReplayOnOtherRowsReleasesTheSame) {
  for (const Arguments& flags :
       {Arguments{"--optimizer", "adam", "--ema", "0.9"}, Arguments{"--method", "dpsgd-quantile"},
        Arguments{"--method", "dpis"}, Arguments{"--method", "adp-sgd", "--schedule", "adaptive"},
        Arguments{"--method", "adaclip"}}) {
    TemporaryFolder values;
    const Arguments seeded = {"--seed", "7", "--device", GetParam()};
    const Arguments words = with(with(with(kTrain, seeded), kSixSteps), flags);
    Observed one(GetParam());
    Observed other(GetParam());
    write_table(other.path(), 6);
    const Ended first =
        one.run(words, [&] { return new RecordingObserver(values / "values", {}); });
    ASSERT_EQ(first.exit, 0) << first.err;
    const Ended second = other.run(words, [&] {
      return new ReplayingObserver(values / "values", values / "position", values / "differences",
                                   {});
    });
    EXPECT_EQ(second.exit, 0) << second.err;
    EXPECT_EQ(content_of(values / "differences"), "");
    EXPECT_EQ(content_of(values / "position"), std::to_string(fs::file_size(values / "values")));
    for (const auto& entry : fs::directory_iterator(one.path() / "run/release")) {
      const std::string name = "run/release/" + entry.path().filename().string();
      EXPECT_TRUE(one.file(name) == other.file(name)) << name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Engines, OnEveryEngine, testing::Values("cpu", "cuda"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Transcript, IsRefusedWithoutASeed) {
  EXPECT_THROW(SeededKey(TrainConfig{}), InputError);
  Observed run("cpu");
  TranscriptMemory memory;
  const auto observe = [&] { return new EndingTranscript(memory.file(), {}); };
  const Arguments words = with(kTrain, kSixSteps);
  const Ended refused = run.run(words, observe);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.err.find("--seed: expected one"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(run.path() / "run"));
  EXPECT_EQ(memory.content(), "");

  // Nor does a run for release go on under one.
  TemporaryFolder values;
  ASSERT_EQ(run.run(words,
                    [&] {
                      return new RecordingObserver(values / "values", {SIGKILL, 3});
                    })
                .exit,
            -SIGKILL);
  EXPECT_EQ(run.run(kResume, observe).exit, 2);
  EXPECT_EQ(memory.content(), "");
  EXPECT_EQ(run.run(kResume, [] { return nullptr; }).exit, 0);
}

/// One that is put there while a run goes on has no proof that it is a seeded one.
TEST(Transcript, SeesNothingBeforeASeededRunBegins) {
  TranscriptMemory memory;
  Transcript transcript(proof(), memory.file());
  EXPECT_EQ(observer(&transcript), nullptr);
  const auto seen_gate = [&] {
    return Gate(Generator::chacha20, key_from_seed(1), all_paid(), {}, &transcript);
  };
  const GaussianRelease release{.name = "a sum",
                                .purpose = Stream::noise,
                                .step = 0,
                                .grid = 1.0,
                                .noise_std = 0x1p20,
                                .sensitivity = 1.0,
                                .charge = {privacy::Gaussian{1.0}, {}}};
  Gate gate = seen_gate();
  const double value = gate.release(release, 5);
  EXPECT_EQ(memory.content(), "");

  transcript.begin(proof(), {.generator = "chacha20"}, [] { return std::uint64_t{3}; });
  EXPECT_EQ(observer(&transcript), &transcript);
  Gate again = seen_gate();
  EXPECT_EQ(again.release(release, 5), value);
  Gate unseen(Generator::chacha20, key_from_seed(1), all_paid());
  EXPECT_EQ(unseen.release(release, 5), value);
  const std::vector<transcript::Record> records = transcript::decode(memory.content());
  ASSERT_EQ(records.size(), 2u);
  const auto& r = std::get<transcript::Release>(records[1]);
  EXPECT_EQ(r.sums, std::vector<std::int64_t>{5});
  EXPECT_EQ(r.values, std::vector<double>{value});
  EXPECT_EQ(r.charged, 3u);
}

}  // namespace
}  // namespace cudp
