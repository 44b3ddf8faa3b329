// Ranks that share one device: the files of one rank, whether the host adds up their sums or NCCL
// does, which lets ranks share a device from 2.30 on.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "runtime/data/glyphs.hpp"
#include "runtime/device/cuda/nccl.hpp"
#include "tests/gpu/training.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/data_files.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kExamples = 2'000;  // four tiles: each of four ranks has some

/// Three layers of which the middle one has 2^20 weights: cuBLAS multiplies it.
constexpr const char* kWide = R"(name = "wide"
loss = "cross_entropy"
activation = "relu"
layers = [
  { type = "dense", name = "fc1", out = 1024 },
  { type = "activation" },
  { type = "dense", name = "fc2", out = 1024 },
  { type = "activation" },
  { type = "dense", name = "fc3", out = "outputs" },
]
)";

struct RanksCase {
  const char* name;
  Arguments flags;
};
void PrintTo(const RanksCase& c, std::ostream* os) { *os << c.name; }

const RanksCase kCases[] = {
    {"logistic",
     {"--dataset", "images", "--model", "logistic", "--precision", "fp32", "--batch", "64"}},
    {"quantile",
     {"--dataset", "images", "--model", "logistic", "--method", "dpsgd-quantile", "--precision",
      "fp32", "--batch", "64"}},
    {"cnn", {"--dataset", "images", "--model", "cnn", "--precision", "fp32", "--batch", "16"}},
    {"cifar_cnn_tf32",
     {"--dataset", "colour", "--model", "cifar-cnn", "--precision", "tf32", "--batch", "8"}},
    {"wide",
     {"--dataset", "images", "--model", "wide.toml", "--precision", "fp32", "--batch", "16"}},
};

class RanksOnOneDevice : public testing::TestWithParam<RanksCase> {
 protected:
  RanksOnOneDevice() {
    write_text(folder_ / "wide.toml", kWide);
    fs::create_directories(fs::path(folder_.path()) / "images");
    fs::create_directories(fs::path(folder_.path()) / "colour");
    for (const auto& [prefix, first, count] :
         {std::tuple{"train", 0u, kExamples}, std::tuple{"t10k", kExamples, 12u}}) {
      const Dataset d = make_glyphs(1, first, count);
      const std::string name = folder_ / (std::string("images/") + prefix);
      write_text(name + "-images-idx3-ubyte",
                 idx_images(count, 28, 28,
                            {reinterpret_cast<const char*>(d.bytes.data()), d.bytes.size()}));
      write_text(name + "-labels-idx1-ubyte",
                 idx_labels(count, {reinterpret_cast<const char*>(d.labels.data()), count}));
    }
    for (int file = 1; file <= 6; ++file) {
      std::string records;
      for (std::uint32_t i = 0; i < (file == 6 ? 8 : kExamples / 5); ++i) {
        records += static_cast<char>((i * 7 + static_cast<std::uint32_t>(file)) % 10);
        for (std::uint32_t k = 0; k < 3072; ++k)
          records += static_cast<char>(i * 31 + k * 7 + (k * k >> 5));
      }
      write_text(folder_ / (file == 6 ? "colour/test_batch.bin"
                                      : "colour/data_batch_" + std::to_string(file) + ".bin"),
                 records);
    }
    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  }
  ~RanksOnOneDevice() override { ::unsetenv("NCCL_MULTI_RANK_GPU_ENABLE"); }
  RanksOnOneDevice(const RanksOnOneDevice&) = delete;
  RanksOnOneDevice& operator=(const RanksOnOneDevice&) = delete;
  RanksOnOneDevice(RanksOnOneDevice&&) = delete;
  RanksOnOneDevice& operator=(RanksOnOneDevice&&) = delete;

  Ended train(const std::string& out, int ranks, const std::string& by) const {
    const Arguments words = {"train",
                             "--epsilon",
                             "3",
                             "--delta",
                             "1e-5",
                             "--threads",
                             "1",
                             "--steps",
                             "3",
                             "--seed",
                             "5",
                             "--device",
                             "cuda",
                             "--share-device",
                             "--rank-timeout",
                             "120",
                             "--ranks",
                             std::to_string(ranks),
                             "--sum-by",
                             by,
                             "--out",
                             out};
    return run_as_cudp(folder_.path(), with(words, GetParam().flags));
  }

  /// What no clock decides.
  std::map<std::string, std::string> files_of(const std::string& out) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / (out + "/release")))
      if (entry.is_regular_file()) files[entry.path().filename()] = content_of(entry.path());
    files["ledger"] = content_of(folder_ / (out + "/private/ledger"));
    return files;
  }

  /// says: how the line at the start of the run goes on.
  void expect_files_of_one(const std::string& by, const std::string& says) const {
    const Ended alone = train("alone", 1, "auto");
    ASSERT_EQ(alone.exit, 0) << alone.err;
    const auto want = files_of("alone");
    ASSERT_GE(want.size(), 4u);
    for (const int ranks : {2, 4}) {
      const std::string out = by + std::to_string(ranks);
      SCOPED_TRACE(out);
      const Ended ended = train(out, ranks, by);
      ASSERT_EQ(ended.exit, 0) << ended.err;
      EXPECT_NE(ended.err.find("sums of ranks: by " + says), std::string::npos) << ended.err;
      const auto got = files_of(out);
      EXPECT_EQ(got.size(), want.size());
      for (const auto& [name, content] : want)
        EXPECT_TRUE(got.contains(name) && got.at(name) == content) << name;
    }
  }

  TemporaryFolder folder_;
};

TEST_P(RanksOnOneDevice, HaveTheFilesOfOneByTheHost) { expect_files_of_one("host", "the host "); }

TEST_P(RanksOnOneDevice, HaveTheFilesOfOneByNccl) {
  std::string lacking;
  try {
    const int version = cuda::nccl_version();
    if (!cuda::nccl_may_share(version))
      lacking = cuda::nccl_name(version) + " lets no ranks share a device";
  } catch (const Error& e) {
    lacking = e.what();
  }
  if (!lacking.empty()) GTEST_SKIP() << lacking;
  expect_files_of_one("nccl", "NCCL ");
}

INSTANTIATE_TEST_SUITE_P(Models, RanksOnOneDevice, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cudp
