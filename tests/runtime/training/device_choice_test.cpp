// What runs where, on a machine with a CUDA device, which is made up here.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/device/backend.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_device.hpp"
#include "tests/support/test_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using Json = nlohmann::json;

class DeviceChoice : public testing::Test {
 protected:
  Ended run(const Arguments& words) const {
    std::fflush(stdout);  // the new process has a copy of what is not written yet
    return run_observed(folder_.path(), words, [] {
      replace_cuda(&emulated_cuda(), true);
      return nullptr;
    });
  }

  Arguments on(const std::string& device, const Arguments& words) const {
    return with(words, {"--device", device});
  }

  /// The lines that say which device was taken.
  static std::vector<std::string> choices(const std::string& err) {
    std::vector<std::string> found;
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);)
      if (line.find("device: ") != std::string::npos) found.push_back(line);
    return found;
  }
  void expect_same_release(const std::string& a, const std::string& b) const {
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / a / "release")) {
      if (!entry.is_regular_file()) continue;
      ++files;
      const fs::path name = fs::relative(entry.path(), folder_.path() / a);
      EXPECT_EQ(content_of(entry.path()), content_of(folder_.path() / b / name)) << name;
    }
    EXPECT_GE(files, 3);
  }

  TemporaryFolder folder_;
};

/// Short texts with one of two words each.
class TextDeviceChoice : public DeviceChoice {
 protected:
  TextDeviceChoice() {
    std::string rows;
    for (int i = 0; i < 200; ++i) rows += (i * 7 % 3 == 0 ? "1\ta good film\n" : "0\ta bad film\n");
    write_text(folder_ / "texts.tsv", rows);
    write_text(folder_ / "schema.toml", R"(name = "films"
header = false
delimiter = "\t"
quotes = false
columns = [
  {name = "good", kind = "label", values = ["0", "1"]},
  {name = "text", kind = "text"},
]
)");
    write_text(folder_ / "vectors.txt", "good 1 0 0\nbad -1 0 0\nfilm 0 1 0\na 0 0 1\n");
  }

  static Arguments train(const std::string& out) {
    return {"train",       "--dataset", "texts.tsv", "--schema", "schema.toml", "--embedding",
            "vectors.txt", "--model",   "imdb-mean", "--tokens", "4",           "--out",
            out,           "--epsilon", "8",         "--delta",  "1e-5",        "--batch",
            "50",          "--steps",   "3",         "--lr",     "0.5",         "--seed",
            "1",           "--threads", "1"};
  }
};

/// The weights of a run.
std::vector<float> weights_in(const fs::path& run) {
  return decode_safetensors(content_of(run / "release" / "model.safetensors"), "model").values;
}

TEST_F(TextDeviceChoice, AutoTrainsTextsOnTheDevice) {
  for (const char* const device : {"auto", "cuda", "cpu"}) {
    const Ended ended = run(on(device, train(device)));
    ASSERT_EQ(ended.exit, 0) << ended.err;
    EXPECT_TRUE(choices(ended.err).empty()) << ended.err;
  }
  expect_same_release("auto", "cuda");
  const std::string config = content_of(folder_ / "auto/release/config.toml");
  EXPECT_NE(config.find("device = \"cuda\"\n"), std::string::npos);
  const std::vector<float> got = weights_in(folder_ / "auto"), want = weights_in(folder_ / "cpu");
  ASSERT_EQ(got.size(), want.size());
  const auto [error, size] = cases::distance(got.data(), want.data(), want.size());
  EXPECT_TRUE(error <= 1e-5 * size) << error << " of " << size;
}

TEST_F(TextDeviceChoice, AutoScoresTextsOnTheDevice) {
  ASSERT_EQ(run(on("cpu", train("run"))).exit, 0);
  const Arguments data = {"--dataset",   "texts.tsv",   "--schema",
                          "schema.toml", "--embedding", "vectors.txt"};
  const Arguments eval = with({"eval", "run"}, data);
  const Arguments predict = with({"predict", "run", "--out", "-"}, data);
  for (const Arguments& words : {eval, predict}) {
    const Ended automatic = run(on("auto", words)), cuda = run(on("cuda", words));
    ASSERT_EQ(automatic.exit, 0) << automatic.err;
    EXPECT_TRUE(choices(automatic.err).empty()) << automatic.err;
    EXPECT_EQ(automatic.out, cuda.out);
    EXPECT_FALSE(automatic.out.empty());
  }
}

/// Weights of a run on CUDA are the CPU's but for rounding.
void expect_near_weights(const fs::path& got, const fs::path& want) {
  const std::vector<float> a = weights_in(got), b = weights_in(want);
  ASSERT_EQ(a.size(), b.size());
  const auto [error, size] = cases::distance(a.data(), b.data(), b.size());
  EXPECT_TRUE(error <= 1e-5 * size) << error << " of " << size;
}

TEST_F(DeviceChoice, AutoTrainsWithClassWeightsOnTheDevice) {
  const auto train = [](const std::string& out, const std::string& weights) {
    return Arguments{"train", "--dataset", "glyphs", "--model",         "logistic", "--out",
                     out,     "--delta",   "1e-5",   "--steps",         "2",        "--batch",
                     "60",    "--seed",    "3",      "--class-weights", weights,    "--epsilon",
                     "8",     "--threads", "1"};
  };
  const std::string weights = "1,1,1,1,1,1,1,1,1,9";
  for (const char* const device : {"auto", "cuda", "cpu"}) {
    const Ended ended = run(on(device, train(device, weights)));
    ASSERT_EQ(ended.exit, 0) << ended.err;
    EXPECT_EQ(ended.err.find("on the CPU"), std::string::npos) << ended.err;
  }
  expect_same_release("auto", "cuda");
  expect_near_weights(folder_ / "auto", folder_ / "cpu");
}

Arguments short_training(const std::string& out) {
  return {"train", "--dataset", "glyphs", "--model",   "logistic", "--out",
          out,     "--delta",   "1e-5",   "--steps",   "6",        "--batch",
          "20",    "--seed",    "3",      "--epsilon", "8",        "--checkpoint-every",
          "2",     "--threads", "1"};
}

TEST_F(DeviceChoice, FrozenLayersTrainOnTheDevice) {
  const auto layers = [](const char* rate) {
    return std::string(
               "name = \"two\"\nlayers = [\n  { type = \"dense\", name = \"fc1\", out = 5") +
           rate + " },\n  { type = \"dense\", name = \"fc2\", out = \"outputs\" },\n]\n";
  };
  write_text(folder_ / "two.toml", layers(""));
  write_text(folder_ / "slow.toml", layers(", lr_scale = 0.5"));
  TensorFile start{.tensors = {{.name = "fc2.weight", .shape = {10, 5}, .offset = 0, .size = 50}},
                   .values = std::vector<float>(50, 0.125f),
                   .metadata = {}};
  start.tensors.push_back({.name = "fc2.bias", .shape = {10}, .offset = 50, .size = 10});
  start.values.resize(60, 0.0f);
  write_text(folder_ / "start.safetensors", encode_safetensors(start));
  const auto train = [](const std::string& out, const std::string& model, const Arguments& more) {
    return with(
        {"train", "--dataset", "glyphs", "--model", model, "--out", out, "--delta", "1e-5",
         "--steps", "2", "--batch", "60", "--seed", "3", "--epsilon", "8", "--threads", "1"},
        more);
  };
  const Arguments init = {"--init", "start.safetensors"};
  const std::vector<std::tuple<std::string, std::string, Arguments>> all = {
      {"started", "two.toml", init},
      {"frozen", "two.toml", with(init, {"--freeze", "fc2"})},
      {"slow", "slow.toml", {}}};
  for (const auto& [name, model, more] : all) {
    SCOPED_TRACE(name);
    for (const char* const device : {"cuda", "auto", "cpu"}) {
      const Ended ended = run(on(device, train(name + device, model, more)));
      ASSERT_EQ(ended.exit, 0) << ended.err;
      EXPECT_EQ(ended.err.find("on the CPU"), std::string::npos) << ended.err;
    }
    expect_same_release(name + "auto", name + "cuda");
    expect_near_weights(folder_ / (name + "cuda"), folder_ / (name + "cpu"));
  }
  EXPECT_NE(content_of(folder_ / "startedcuda/release/privacy.json").find("start.safetensors"),
            std::string::npos);
}

/// The process ends with 1 and one line, and the run goes on from its checkpoint.
TEST_F(DeviceChoice, ADeviceThatFailsLeavesARunThatResumes) {
  const Ended failed = run_observed(folder_.path(), on("cuda", short_training("failed")), [] {
    static Backend failing = emulated_cuda();
    failing.make_engine = [](const Network& net, const EngineSettings& s) {
      return device_engine(net, s, {.failing_launch = 20});  // of the fifth step
    };
    replace_cuda(&failing, true);
    return nullptr;
  });
  EXPECT_EQ(failed.exit, 1);
  EXPECT_NE(failed.err.find("an emulated device fails"), std::string::npos) << failed.err;
  EXPECT_FALSE(fs::exists(folder_.path() / "failed" / "release" / "model.safetensors"));
  const Ended whole = run(on("cuda", short_training("whole")));
  ASSERT_EQ(whole.exit, 0) << whole.err;
  const Ended resumed = run({"train", "--resume", "failed"});
  ASSERT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_TRUE(fs::exists(folder_.path() / "whole" / "release" / "model.safetensors"));
  expect_same_release("failed", "whole");
}

/// Another version of cuBLAS may round a sum otherwise, and under the same noise the difference of
/// both would be released without noise.
TEST_F(DeviceChoice, ARunIsNotResumedWithAnotherLibrary) {
  const auto run_with = [&](const std::string& library, std::size_t failing_launch,
                            const Arguments& words) {
    return run_observed(folder_.path(), words, [library, failing_launch] {
      static Backend made_up = emulated_cuda();
      made_up.library_arithmetic = [library](const Network&, bool) { return ", " + library; };
      if (failing_launch > 0)
        made_up.make_engine = [failing_launch](const Network& net, const EngineSettings& s) {
          return device_engine(net, s, {.failing_launch = failing_launch});
        };
      replace_cuda(&made_up, true);
      return nullptr;
    });
  };
  EXPECT_EQ(run_with("cuBLAS 13.0.2", 20, on("cuda", short_training("run"))).exit, 1);
  const Ended other = run_with("cuBLAS 13.1.0", 0, {"train", "--resume", "run"});
  EXPECT_EQ(other.exit, 2);
  EXPECT_NE(other.err.find("expected the arithmetic that the run began with, cuda emulated, cuBLAS "
                           "13.0.2, found cuda emulated, cuBLAS 13.1.0"),
            std::string::npos)
      << other.err;
  EXPECT_EQ(run_with("cuBLAS 13.0.2", 0, {"train", "--resume", "run"}).exit, 0);
}

/// The machine's only device is number 0.
TEST_F(DeviceChoice, ADeviceIsChosenByItsNumber) {
  const Ended first = run(on("cuda:0", short_training("first")));
  ASSERT_EQ(first.exit, 0) << first.err;
  const std::string config = content_of(folder_.path() / "first" / "release" / "config.toml");
  EXPECT_NE(config.find("device = \"cuda\"\n"), std::string::npos) << "its number is not kept";
  const Ended second = run(on("cuda:1", with(short_training("second"), {"--quiet"})));
  EXPECT_EQ(second.exit, 2);
  EXPECT_NE(second.err.find("--device: expected cuda:0, the only CUDA device, found cuda:1"),
            std::string::npos)
      << second.err;
  EXPECT_EQ(std::ranges::count(second.err, '\n'), 1) << second.err;
  for (const std::string wrong : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "gpu"}) {
    const Ended refused = run(on(wrong, short_training("third")));
    EXPECT_EQ(refused.exit, 2) << wrong;
    EXPECT_NE(refused.err.find("--device: expected "), std::string::npos) << refused.err;
  }
  EXPECT_FALSE(fs::exists(folder_ / "second"));
  EXPECT_FALSE(fs::exists(folder_ / "third"));
}

TEST_F(DeviceChoice, TheNumberIsOneOfTheDevicesThatThereAre) {
  const auto device = [](const char* name, int major) {
    return DeviceInfo{.name = name, .major = major, .minor = 0};
  };
  const std::vector<DeviceInfo> three = {device("new", 9), device("old", 7), device("newer", 10)};
  const auto number = [](Device d, int n) {
    d.number = n;
    return d;
  };
  EXPECT_TRUE(can_use(Device::automatic, three));
  EXPECT_TRUE(can_use(Device::cuda, three));
  EXPECT_TRUE(can_use(number(Device::cuda, 2), three));
  EXPECT_FALSE(can_use(Device::automatic, {}));
  EXPECT_FALSE(can_use(Device::automatic, {device("old", 7)}));
  const auto refusal = [&](int n, const std::vector<DeviceInfo>& devices) -> std::string {
    try {
      (void)can_use(number(Device::cuda, n), devices);
    } catch (const InputError& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_EQ(refusal(3, three), "--device: expected cuda:0 to cuda:2, found cuda:3");
  EXPECT_EQ(refusal(1, three),
            "--device: expected a CUDA device of compute capability 8.0 or higher, found old with "
            "7.0");
  EXPECT_EQ(refusal(1, {device("new", 9)}),
            "--device: expected cuda:0, the only CUDA device, found cuda:1");
  EXPECT_TRUE(refusal(0, {}).starts_with(
      "--device: expected a CUDA device of compute capability 8.0 or higher, found "));
}

/// CUDA has all layers.
TEST_F(DeviceChoice, AutoTakesTheDeviceThatIsFound) {
  struct Found {
    Found() { replace_cuda(&emulated_cuda(), true); }
    Found(const Found&) = delete;
    Found& operator=(const Found&) = delete;
    ~Found() { replace_cuda(nullptr); }
  } found;
  EXPECT_EQ(choose_backend(Device::automatic).name, "cuda");
  EXPECT_EQ(choose_backend(Device::cuda).name, "cuda");
  EXPECT_EQ(choose_backend(Device::cpu).name, "cpu");
  for (const cases::Case& c : cases::kCases)
    EXPECT_NO_THROW(device_engine(cases::network_of(c), {}));
  for (const cases::Case& c : cases::kTextCases)
    EXPECT_NO_THROW(device_engine(cases::network_of(c), {}));
}

}  // namespace
}  // namespace cudp
