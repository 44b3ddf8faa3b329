// --init, --freeze and lr_scale from the command line: what is trained, stated, refused and
// resumed.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/training/public_weights.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/settings_data.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kStart = "start-table.safetensors";

class FineTuningCli : public testing::Test {
 protected:
  void SetUp() override { settings_data::write_data(folder_.path()); }

  Finished cudp(const Arguments& words) const {
    return CudpProcess(folder_, words, folder_.path()).wait();
  }
  Arguments training(const std::string& run, const Arguments& more) const {
    return with({"train", "--dataset", "people.csv", "--device", "cpu", "--threads", "1", "--quiet",
                 "--seed", "7", "--batch", "40", "--out", run},
                more);
  }
  static Arguments private_table(const Arguments& more) {
    return with({"--model", "table.toml", "--epsilon", "3", "--delta", "1e-5", "--steps", "6",
                 "--size-is-public"},
                more);
  }
  Finished train(const std::string& run, const Arguments& more) const {
    return cudp(training(run, private_table(more)));
  }
  /// A training without a seed, whose model may be published.
  Arguments unseeded(const std::string& run, const Arguments& more) const {
    Arguments words = training(run, private_table(more));
    const auto seed = std::ranges::find(words, "--seed");
    words.erase(seed, seed + 2);
    return words;
  }
  std::string file(const std::string& name) const { return content_of(folder_ / name); }
  Json certificate(const std::string& run) const {
    return Json::parse(file(run + "/release/privacy.json"));
  }
  TensorFile model(const std::string& name) const { return decode_safetensors(file(name), name); }
  static std::vector<float> tensor(const TensorFile& f, const std::string& name) {
    const auto t = std::ranges::find(f.tensors, name, &ParameterTensor::name);
    if (t == f.tensors.end()) return {};
    return {f.values.begin() + static_cast<std::ptrdiff_t>(t->offset),
            f.values.begin() + static_cast<std::ptrdiff_t>(t->offset + t->size)};
  }
  void expect_verified(const std::string& run, const Arguments& more = {}) const {
    const Finished f = cudp(with({"verify", run}, more));
    EXPECT_EQ(f.exit, 0) << f.out << f.err;
  }
  void expect_refused(const Arguments& more, const std::string& sentence) const {
    const Finished f = train("refused", more);
    EXPECT_EQ(f.exit, 2) << sentence;
    EXPECT_EQ(f.err, "cudp: " + sentence + "\n");
    EXPECT_FALSE(fs::exists(folder_ / "refused"));
  }
  /// Files of a run that do not depend on time.
  std::map<std::string, std::string> files_of(const std::string& run) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / run / "release"))
      files[entry.path().filename().string()] = content_of(entry.path());
    return files;
  }

  TemporaryFolder folder_;
};

TEST_F(FineTuningCli, FrozenLayersAreReleasedAsTheyWereAndTheOthersTrained) {
  const Finished f =
      train("run", {"--init", kStart, "--freeze", "fc1*", "--test-data", "test.csv"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const TensorFile start = model(kStart), end = model("run/release/model.safetensors");
  for (const char* same : {"fc1.weight", "fc1.bias"})
    EXPECT_EQ(tensor(end, same), tensor(start, same));
  for (const char* trained : {"fc2.weight", "fc2.bias"}) {
    EXPECT_EQ(tensor(end, trained).size(), tensor(start, trained).size());
    EXPECT_NE(tensor(end, trained), tensor(start, trained));
  }
  const Json input = certificate("run").at("public_inputs").at(0);
  EXPECT_EQ(input.at("file"), kStart);
  const Finished sum = cudp({"predict", "run", "--dataset", "test.csv", "--out", "answers.csv"});
  EXPECT_EQ(sum.exit, 0) << sum.err;
  EXPECT_EQ(input.at("sha256").get<std::string>().size(), 64u);
  EXPECT_EQ(input.at("frozen"), Json({"fc1.weight", "fc1.bias"}));
  EXPECT_FALSE(input.contains("not_counted"));
  expect_verified("run");
  const Finished e = cudp({"eval", "run", "--dataset", "test.csv", "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  // The accuracy that the training measured, with its frozen layers, is that of the released model.
  const std::vector<std::string> rows = lines_of(file("run/private/metrics.jsonl"));
  EXPECT_EQ(Json::parse(e.out).at("test_accuracy"), Json::parse(rows.back()).at("test_accuracy"));
}

TEST_F(FineTuningCli, WithoutFreezeAllIsTrainedFromTheFile) {
  ASSERT_EQ(train("run", {"--init", kStart, "--lr", "1e-6"}).exit, 0);
  const TensorFile start = model(kStart), end = model("run/release/model.safetensors");
  for (const char* name : {"fc1.weight", "fc2.weight"}) {
    const std::vector<float> a = tensor(start, name), b = tensor(end, name);
    EXPECT_NE(a, b);
    for (std::size_t j = 0; j < a.size(); ++j) EXPECT_NEAR(a[j], b[j], 1e-3);
  }
  EXPECT_FALSE(certificate("run").at("public_inputs").at(0).contains("frozen"));
  expect_verified("run");
}

TEST_F(FineTuningCli, AFileWithoutAnExtensionIsVerified) {
  std::filesystem::copy_file(folder_ / kStart, folder_ / "start");
  ASSERT_EQ(train("run", {"--init", "start"}).exit, 0);
  EXPECT_EQ(certificate("run").at("public_inputs").at(0).at("file"), "start");
  expect_verified("run");
}

/// The digest is that of sha256sum.
TEST_F(FineTuningCli, TheDigestIsThatOfTheFile) {
  ASSERT_EQ(train("run", {"--init", kStart}).exit, 0);
  const std::string command =
      "cd " + folder_.path().string() + " && sha256sum " + kStart + " > digest.txt";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(file("digest.txt").substr(0, 64),
            certificate("run").at("public_inputs").at(0).at("sha256").get<std::string>());
}

TEST_F(FineTuningCli, NamesWhatTheFileLacksAndWhatTheModelDoesNotUse) {
  settings_data::write_weights(folder_ / "part.safetensors",
                               {{"fc1.weight", {7, 5}}, {"fc1.bias", {7}}, {"head.weight", {4}}});
  Arguments words =
      training("run", private_table({"--init", "part.safetensors", "--freeze", "fc1"}));
  std::erase(words, "--quiet");
  const Finished f = cudp(words);
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_NE(f.err.find("initial weights of 2 tensors are those of part.safetensors (SHA-256 "),
            std::string::npos)
      << f.err;
  EXPECT_NE(f.err.find(
                "initialised at random, since part.safetensors lacks them: fc2.weight, fc2.bias\n"),
            std::string::npos)
      << f.err;
  EXPECT_NE(f.err.find("not used of part.safetensors: head.weight\n"), std::string::npos) << f.err;
  EXPECT_NE(f.err.find("(50 parameters, 8 of them trained)"), std::string::npos) << f.err;
}

TEST_F(FineTuningCli, RefusesInOneLineWhatCannotWork) {
  expect_refused({"--freeze", "fc1"},
                 "--freeze: expected --init FILE with it, since weights that are drawn at random "
                 "are not worth keeping, found none");
  expect_refused({"--init", "nowhere.safetensors"},
                 "--init: expected a .safetensors file, found none at " +
                     (folder_.path() / fs::path("nowhere.safetensors")).string());
  expect_refused({"--init", kStart, "--freeze", "*"},
                 "--freeze: expected a layer that is left to train, found every one frozen: *");
  expect_refused({"--init", kStart, "--freeze", "fc1,conv*"},
                 "--freeze: expected names of the model's tensors or layers (fc1.weight, fc1.bias, "
                 "fc2.weight, fc2.bias), found 'conv*'");
  expect_refused({"--init", kStart, "--freeze", "fc1.bias"},
                 "--freeze: expected all tensors of a layer or none, found some of fc1; its name "
                 "alone freezes all of it");
  const std::string mlp = (folder_.path() / fs::path("start-mlp.safetensors")).string();
  expect_refused({"--init", "start-mlp.safetensors"},
                 "--init " + mlp +
                     ": fc1.weight: expected shape [7, 5] as the model has, found [1000, 5]; a "
                     "layer with a name that the file does not have is initialised at random");
  const std::string notes = (folder_.path() / fs::path("start-notes.safetensors")).string();
  const Finished other = train("refused", {"--init", "start-notes.safetensors"});
  EXPECT_EQ(other.exit, 2);
  EXPECT_TRUE(other.err.starts_with(
      "cudp: --init " + notes +
      ": expected tensors named as the model's (fc1.weight, fc1.bias, fc2.weight, fc2.bias), "
      "found "))
      << other.err;
  settings_data::write_weights(folder_ / "half.safetensors",
                               {{"fc1.weight", {7, 5}}, {"fc2.weight", {1, 7}}});
  expect_refused({"--init", "half.safetensors", "--freeze", "fc1"},
                 "--freeze: expected tensors that " +
                     (folder_.path() / fs::path("half.safetensors")).string() +
                     " has, found fc1.bias, which it lacks");
  write_text(folder_ / "text.safetensors", "no tensors");
  EXPECT_EQ(train("refused", {"--init", "text.safetensors"}).exit, 2);
  const Finished rate = train("refused", {"--init", kStart, "--lr", "0"});
  EXPECT_EQ(rate.exit, 2);
  EXPECT_EQ(lines_of(rate.err).size(), 1u) << rate.err;
}

/// A rate below what float can show: it follows from what was released, which is complete.
TEST_F(FineTuningCli, SaysAfterwardsThatNoWeightChanged) {
  const Finished f = train("run", {"--init", kStart, "--lr", "1e-29", "--ema", "0"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_EQ(f.err,
            "cudp: no weight changed: run has the weights of start-table.safetensors as they were; "
            "try a larger lr, more epochs, or less weight frozen\n");
  expect_verified("run");
  EXPECT_EQ(tensor(model("run/release/model.safetensors"), "fc2.weight"),
            tensor(model(kStart), "fc2.weight"));
}

TEST_F(FineTuningCli, EveryMethodTrainsTheRestOrSaysThatItHasNoUseForIt) {
  int trained = 0, refused = 0;
  for (const MethodEntry& method : methods()) {
    SCOPED_TRACE(method.name);
    const std::string run = "run-" + method.name;
    Arguments words = {"--init", kStart, "--freeze", "fc1*", "--method", method.name};
    const bool engine = takes(method, "init");
    if (method.gives_privacy) words = with(words, {"--epsilon", "3", "--delta", "1e-5"});
    if (engine) words = with(words, {"--batch", "30", "--size-is-public"});
    if (engine) words = with(words, {"--steps", "5"});
    if (!method.linear_model) words = with(words, {"--model", "table.toml"});
    const Finished f = cudp(with({"train", "--dataset", "people.csv", "--device", "cpu", "--quiet",
                                  "--seed", "7", "--out", run},
                                 words));
    if (!engine || method.name == "norm-bound") {  // norm-bound takes one layer alone
      EXPECT_EQ(f.exit, 2);
      EXPECT_EQ(lines_of(f.err).size(), 1u) << f.err;
      ++refused;
      continue;
    }
    ++trained;
    ASSERT_EQ(f.exit, 0) << f.err;
    const std::string released =
        run + (method.gives_privacy ? "/release" : "/private") + "/model.safetensors";
    EXPECT_EQ(tensor(model(released), "fc1.weight"), tensor(model(kStart), "fc1.weight"));
    EXPECT_NE(tensor(model(released), "fc2.weight"), tensor(model(kStart), "fc2.weight"));
    if (method.gives_privacy) expect_verified(run);
  }
  EXPECT_EQ(trained, 10);
  EXPECT_EQ(refused, 5);
}

TEST_F(FineTuningCli, AReplayHolds) {
  for (const Arguments& more :
       {Arguments{}, Arguments{"--method", "dpsgd-quantile"}, Arguments{"--clipping", "per-layer"},
        Arguments{"--method", "adaclip"}}) {
    const std::string run = "run" + std::to_string(more.size()) + (more.empty() ? "" : more[1]);
    ASSERT_EQ(train(run, with({"--init", kStart, "--freeze", "fc1*"}, more)).exit, 0);
    const Finished f = cudp(
        {"verify", run, "--replay", run + "-again", "--seed", "3", "--data-dir", folder_.path()});
    EXPECT_EQ(f.exit, 0) << f.out << f.err;
  }
}

TEST_F(FineTuningCli, AResumedRunNeedsNoFileAndEndsInTheSameBytes) {
  const Arguments words = {
      "--init",  kStart,       "--freeze",           "fc1*", "--steps",   "400",
      "--model", "table.toml", "--checkpoint-every", "7",    "--epsilon", "3",
      "--delta", "1e-5",       "--eval-every",       "0"};
  ASSERT_EQ(cudp(training("whole", words)).exit, 0);
  CudpProcess process(folder_, training("cut", words), folder_.path());
  while (newest_checkpoint_file(folder_ / "cut").empty() ||
         newest_checkpoint_file(folder_ / "cut").filename() == "checkpoint-0")
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.signal(SIGKILL);
  process.wait();
  if (fs::exists(folder_ / "cut/private/result.json")) GTEST_SKIP() << "it was faster";
  const std::string name = kStart;
  fs::create_directory(folder_ / "elsewhere");
  fs::rename(folder_ / name, folder_ / ("elsewhere/" + name));
  // Another file of the same name is not what the run began with.
  settings_data::write_weights(folder_ / name, {{"fc1.weight", {7, 5}}});
  const Finished other = cudp({"train", "--resume", "cut", "--init", kStart, "--quiet"});
  EXPECT_EQ(other.exit, 2);
  EXPECT_TRUE(
      other.err.starts_with("cudp: --init: expected the file that the run began with, SHA-256 "))
      << other.err;
  EXPECT_EQ(lines_of(other.err).size(), 1u);
  fs::remove(folder_ / name);
  const Finished unlike = cudp({"train", "--resume", "cut", "--freeze", "fc2", "--quiet"});
  EXPECT_EQ(unlike.exit, 2);
  EXPECT_TRUE(unlike.err.starts_with("cudp: --freeze: expected \"fc1*\" as in the run"))
      << unlike.err;
  const Finished f = cudp({"train", "--resume", "cut", "--quiet"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(files_of("cut"), files_of("whole"));
}

TEST_F(FineTuningCli, FreshNoiseKeepsFrozenLayersAndTheDigest) {
  const Arguments words = {
      "--init",  kStart,       "--freeze",           "fc1*", "--steps",   "400",
      "--model", "table.toml", "--checkpoint-every", "7",    "--epsilon", "3",
      "--delta", "1e-5",       "--eval-every",       "0"};
  CudpProcess process(folder_, training("cut", words), folder_.path());
  while (newest_checkpoint_file(folder_ / "cut").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.signal(SIGKILL);
  process.wait();
  if (fs::exists(folder_ / "cut/private/result.json")) GTEST_SKIP() << "it was faster";
  const Finished f = cudp({"train", "--resume", "cut", "--fresh-noise", "--init",
                           std::string("./") + kStart, "--quiet"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(tensor(model("cut/release/model.safetensors"), "fc1.weight"),
            tensor(model(kStart), "fc1.weight"));
  expect_verified("cut");
}

TEST_F(FineTuningCli, RanksTrainTheSame) {
  for (const Arguments& more :
       {Arguments{}, Arguments{"--method", "adaclip"}, Arguments{"--method", "dpis"}}) {
    const std::string run = "run" + (more.empty() ? "" : more[1]);
    const Arguments words = with({"--init", kStart, "--freeze", "fc1*"}, more);
    ASSERT_EQ(train(run, words).exit, 0);
    const Finished f = train(run + "2", with(words, {"--ranks", "2"}));
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_EQ(files_of(run), files_of(run + "2"));
  }
}

TEST_F(FineTuningCli, RanksResumeWithTheFrozenWeights) {
  const Arguments words = {
      "--init",  kStart,       "--freeze",           "fc1*", "--steps",   "300",
      "--model", "table.toml", "--checkpoint-every", "7",    "--epsilon", "3",
      "--delta", "1e-5",       "--eval-every",       "0"};
  ASSERT_EQ(cudp(training("whole", words)).exit, 0);
  CudpProcess process(folder_, training("cut", words), folder_.path());
  while (newest_checkpoint_file(folder_ / "cut").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.signal(SIGKILL);
  process.wait();
  if (fs::exists(folder_ / "cut/private/result.json")) GTEST_SKIP() << "it was faster";
  fs::remove(folder_ / std::string(kStart));
  const Finished f = cudp({"train", "--resume", "cut", "--ranks", "2", "--quiet"});
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_EQ(files_of("cut"), files_of("whole"));
}

TEST_F(FineTuningCli, WhatAModelOfCudpSpentIsNamedAsNotCounted) {
  ASSERT_EQ(cudp(unseeded("first", {})).exit, 0);
  Arguments words = training(
      "second", private_table({"--init", "first/release/model.safetensors", "--freeze", "fc1"}));
  std::erase(words, "--quiet");
  const Finished f = cudp(words);
  ASSERT_EQ(f.exit, 0) << f.err;
  const Json input = certificate("second").at("public_inputs").at(0);
  EXPECT_TRUE(input.at("not_counted")
                  .get<std::string>()
                  .starts_with("cudp trained the file on 'people': epsilon 3 at delta 1e-05 of "
                               "that run is not counted "
                               "here"))
      << input;
  const std::string command =
      "cudp account " + (folder_.path() / fs::path("first")).string() + " second";
  EXPECT_NE(f.err.find("for rows that are in both data sets: " + command), std::string::npos)
      << f.err;
  expect_verified("second");
  const Finished both = cudp({"account", "first", "second", "--delta", "1e-5"});
  EXPECT_EQ(both.exit, 0) << both.err;

  // Who replays the run has the file, and not what was beside it.
  fs::create_directory(folder_ / "elsewhere");
  fs::copy(folder_ / "first/release/model.safetensors", folder_ / "elsewhere/model.safetensors");
  fs::copy(folder_ / "people.csv", folder_ / "elsewhere/people.csv");
  fs::copy(folder_ / "people.csv.schema.toml", folder_ / "elsewhere/people.csv.schema.toml");
  const Finished replay = cudp({"verify", "second", "--replay", "again", "--seed", "3",
                                "--data-dir", folder_ / "elsewhere"});
  EXPECT_EQ(replay.exit, 0) << replay.out << replay.err;

  // A model without a certificate beside it.
  fs::copy(folder_ / "first/release/model.safetensors", folder_ / "alone.safetensors");
  ASSERT_EQ(train("third", {"--init", "alone.safetensors"}).exit, 0);
  EXPECT_EQ(certificate("third").at("public_inputs").at(0).at("not_counted"),
            "cudp trained the file on 'people' and no certificate is beside it: what it may show "
            "of those rows is not counted here");
  expect_verified("third");
}

/// Frozen layers are published as the file has them: where the file is not for release, or nothing
/// says that it is and its data set has this one's name, neither is the model.
TEST_F(FineTuningCli, WeightsThatAreNotForReleaseAreNotPublishedInAnotherModel) {
  constexpr const char* kUnpublished = "initial weights are those of a run that is not for release";
  constexpr const char* kSameName =
      "initial weights were trained on data of the same name, and no certificate is beside them";
  const auto reasons = [&](const std::string& run, const std::string& file) {
    const Finished f = cudp(unseeded(run, {"--init", file, "--freeze", "fc1"}));
    EXPECT_EQ(f.exit, 0) << f.err;
    expect_verified(run);
    const Json c = certificate(run);
    EXPECT_EQ(c.at("unsafe_flags"), c.value("not_for_release", Json::array()));
    EXPECT_EQ(c.at("for_release"),
              !fs::exists(folder_.path() / run / "release/NOT-FOR-RELEASE.txt"));
    return c.at("unsafe_flags");
  };
  ASSERT_EQ(train("seeded", {}).exit, 0);
  EXPECT_EQ(reasons("of_seeded", "seeded/release/model.safetensors"), Json({kUnpublished}));
  ASSERT_EQ(
      cudp(training("bare", {"--method", "sgd", "--model", "table.toml", "--steps", "6"})).exit, 0);
  EXPECT_EQ(reasons("of_bare", "bare/private/model.safetensors"), Json({kSameName}));
  EXPECT_EQ(reasons("again", "of_bare/release/model.safetensors"), Json({kUnpublished}));
  ASSERT_EQ(cudp(unseeded("sound", {})).exit, 0);
  EXPECT_EQ(reasons("of_sound", "sound/release/model.safetensors"), Json::array());

  // Public rows may be trained on without privacy, if their data set has another name.
  std::string schema = file("people.csv.schema.toml");
  schema.replace(schema.find("\"people\""), 8, "\"others\"");
  write_text(folder_ / "others.csv.schema.toml", schema);
  fs::copy(folder_ / "people.csv", folder_ / "others.csv");
  ASSERT_EQ(cudp(training("public", {"--dataset", "others.csv", "--method", "sgd", "--model",
                                     "table.toml", "--steps", "6"}))
                .exit,
            0);
  EXPECT_EQ(reasons("of_public", "public/private/model.safetensors"), Json::array());

  // A certificate that leaves the reason out is found.
  for (const char* run : {"of_seeded", "of_bare"}) {
    Json c = certificate(run);
    c["unsafe_flags"] = Json::array();
    c["for_release"] = true;
    c.erase("not_for_release");
    write_text(folder_.path() / run / "release/privacy.json", c.dump(2) + "\n");
    fs::remove(folder_.path() / run / "release/NOT-FOR-RELEASE.txt");
    const Finished found = cudp({"verify", run});
    EXPECT_EQ(found.exit, 1);
    EXPECT_NE(found.out.find("initial weights"), std::string::npos) << found.out;
  }
}

TEST_F(FineTuningCli, VerifyFindsAnotherFileOrOtherFrozenLayers) {
  ASSERT_EQ(train("run", {"--init", kStart, "--freeze", "fc1*"}).exit, 0);
  const std::string path = folder_ / "run/release/privacy.json";
  const std::string before = content_of(path);
  const auto expect_found = [&](const auto& change) {
    Json c = Json::parse(before);
    change(c);
    write_text(path, c.dump(2) + "\n");
    EXPECT_EQ(cudp({"verify", "run"}).exit, 1) << c.dump();
    write_text(path, before);
  };
  expect_found([](Json& c) { c.erase("public_inputs"); });
  expect_found([](Json& c) { c["public_inputs"] = Json::array(); });
  expect_found([](Json& c) { c["public_inputs"].push_back(c["public_inputs"][0]); });
  expect_found([](Json& c) { c["public_inputs"][0]["sha256"] = std::string(64, '0'); });
  expect_found([](Json& c) { c["public_inputs"][0]["frozen"].erase(0); });
  expect_found([](Json& c) { c["public_inputs"][0].erase("guarantee"); });
  expect_found([](Json& c) { c["public_inputs"][0]["not_counted"] = "nothing"; });
  expect_verified("run");
}

TEST_F(FineTuningCli, LearningRatesOfLayersAreUsedStatedAndRefused) {
  const auto model_text = [](const char* rate) {
    return std::string(R"(name = "table"
activation = "tanh"
layers = [
  { type = "dense", name = "fc1", out = 7)") +
           rate + R"( },
  { type = "activation" },
  { type = "dense", name = "fc2", out = "outputs" },
]
)";
  };
  write_text(folder_ / "slow.toml", model_text(", lr_scale = 1e-4"));
  write_text(folder_ / "plain.toml", model_text(""));
  const auto of = [&](const std::string& run, const Arguments& more) {
    return cudp(training(
        run, with({"--init", kStart, "--epsilon", "3", "--delta", "1e-5", "--steps", "1"}, more)));
  };
  ASSERT_EQ(of("slow", {"--model", "slow.toml"}).exit, 0);
  ASSERT_EQ(of("plain", {"--model", "plain.toml"}).exit, 0);
  const auto moved = [&](const std::string& run, const char* name) {
    const std::vector<float> a = tensor(model(kStart), name),
                             b = tensor(model(run + "/release/model.safetensors"), name);
    double sum = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) sum += std::fabs(static_cast<double>(a[j] - b[j]));
    return sum;
  };
  EXPECT_NEAR(moved("slow", "fc1.weight") / moved("plain", "fc1.weight"), 1e-4, 1e-6);
  EXPECT_EQ(moved("slow", "fc2.weight"), moved("plain", "fc2.weight"));
  expect_verified("slow");
  EXPECT_EQ(cudp({"verify", "slow", "--replay", "again", "--seed", "3"}).exit, 0);
  const Finished adp = of("adp", {"--model", "slow.toml", "--method", "adp-sgd"});
  EXPECT_EQ(adp.exit, 2);
  EXPECT_EQ(adp.err,
            "cudp: --model: expected no lr_scale with --method adp-sgd, whose step sizes are those "
            "of all layers together, found one\n");
}

/// Steps repeated on another network under the same noise would reveal the difference of two sums.
TEST(FreezeAgain, FreezesTheTensorsThatTheRunBeganWithOnly) {
  const Network whole = build_network(parse_model(R"(name = "four"
activation = "tanh"
layers = [
  { type = "dense", name = "in", out = 2 },
  { type = "dense", name = "a/h", out = 2 },
  { type = "dense", name = "b/h", out = 2 },
  { type = "dense", name = "out", out = "outputs" },
])",
                                                  "model", 3),
                                      {4, 1, 1}, 3);
  const PublicWeights weights{
      .input = {.file = "w", .sha256 = "", .frozen = {"a/h.weight", "a/h.bias"}, .not_counted = ""},
      .frozen = {1, 2, 3, 4, 5, 6}};
  Network network = whole;
  EXPECT_THROW(freeze_again({.init = "w", .freeze = "b/h"}, weights, network), InputError);
  freeze_again({.init = "w", .freeze = "a/h"}, weights, network);
  EXPECT_EQ(network.frozen[0].name, "a/h.weight");
}

}  // namespace
}  // namespace cudp
