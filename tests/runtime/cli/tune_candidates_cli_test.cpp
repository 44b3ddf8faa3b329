// cudp tune: grids, methods and features of its candidates.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/tune_fixture.hpp"

namespace cudp {
namespace {

class TuneCandidatesCli : public TuneCli {
 protected:
  /// Returns a tuning of the table, of which sizes and test rows are public, with this grid.
  Arguments tune_public(const std::string& epsilon, const Arguments& grid) const {
    return with(with({"tune", "--dataset", table_.table, "--schema", table_.schema, "--epsilon",
                      epsilon, "--out", out()},
                     args("--size-is-public --delta 1e-5 --device cpu --quiet --runs 2 "
                          "--most-runs 8 --seed 5")),
                with(scored(), grid));
  }
  /// Returns the candidates of a dry run, as text.
  std::vector<std::string> planned(const Arguments& words) const {
    const Finished f = run_cudp(
        folder_, with({"tune", "--dry-run", "--json", "--quiet", "--device", "cpu"}, words));
    EXPECT_EQ(f.exit, 0) << f.err;
    const auto plan = nlohmann::json::parse(f.out);
    std::vector<std::string> settings;
    for (const auto& candidate : plan["candidates"]) settings.push_back(candidate["settings"]);
    return settings;
  }
};

TEST_F(TuneCandidatesCli, TheDefaultGridFollowsTheData) {
  EXPECT_EQ(planned({"--dataset", table_.table, "--schema", table_.schema, "--epsilon", "1"}),
            (std::vector<std::string>{"clip 0.1, schedule constant", "clip 0.1, schedule cosine",
                                      "clip 0.5, schedule constant", "clip 0.5, schedule cosine",
                                      "clip 2, schedule constant", "clip 2, schedule cosine"}));
  // Around the preset of the images, and of the texts.
  EXPECT_EQ(planned({"--dataset", "glyphs", "--epsilon", "3"}),
            (std::vector<std::string>{"clip 0.05, lr 0.25", "clip 0.05, lr 0.5", "clip 0.05, lr 1",
                                      "clip 0.1, lr 0.25", "clip 0.1, lr 0.5", "clip 0.1, lr 1",
                                      "clip 0.2, lr 0.25", "clip 0.2, lr 0.5", "clip 0.2, lr 1"}));
  EXPECT_EQ(
      planned({"--dataset", "sentences", "--epsilon", "3"}),
      (std::vector<std::string>{"clip 0.5, lr 0.005", "clip 0.5, lr 0.01", "clip 0.5, lr 0.02",
                                "clip 1, lr 0.005", "clip 1, lr 0.01", "clip 1, lr 0.02",
                                "clip 2, lr 0.005", "clip 2, lr 0.01", "clip 2, lr 0.02"}));
}

/// The releases of dpis and dp-agd are chosen on the way, and a filter admits them: its whole
/// budget counts, as a Renyi divergence or as zCDP. Those of dpsgd-quantile are fixed ahead.
TEST_F(TuneCandidatesCli, AdaptiveMethodsAreCountedByTheirFilters) {
  const auto tuned = [&](const Arguments& grid) {
    std::filesystem::remove_all(out());
    const Finished f = run_cudp(folder_, tune_public("2", grid));
    EXPECT_EQ(f.exit, 0) << f.err;
    const Finished verified = run_cudp(folder_, {"verify", out()});
    EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
    return json("release/privacy.json");
  };
  const auto certificate = tuned(args("--method dpis --clip 0.1,1 --batch 64 --steps 12"));
  ASSERT_EQ(certificate["tuning"]["spending"].size(), 1u);
  const auto& part = certificate["tuning"]["spending"][0];
  EXPECT_EQ(part["spent"], "renyi filter");
  EXPECT_EQ(part["order"], certificate["order"]);
  EXPECT_GT(certificate["epsilon"].get<double>(), 1.99);
  // As a stated epsilon and delta, a training could have 1.29.
  EXPECT_GT(certificate["training_epsilon"].get<double>(), 1.6);
  // Less than the filter admits is found.
  EXPECT_EQ(verify_changed(certificate, [](auto&) {}), 0);
  EXPECT_NE(verify_changed(certificate,
                           [](auto& c) {
                             auto& spent = c["tuning"]["spending"][0]["divergence"];
                             spent = 0.9 * spent.template get<double>();
                           }),
            0);
  EXPECT_EQ(tuned(args("--method dp-agd --clip 0.1,1"))["tuning"]["spending"][0]["spent"],
            "zcdp filter");
  EXPECT_EQ(tuned(args("--method dpsgd-quantile --quantile-lr 0.1,0.3 --batch 64 --steps 12"))
                ["tuning"]["spending"][0]["spent"],
            "releases");
  const auto mixed = tuned(args("--method dpsgd,dpis --batch 64 --steps 12"));
  EXPECT_EQ(mixed["tuning"]["spending"].size(), 2u);
}

/// The first budget that is tried, half of epsilon, is too small for dpis. The rows are still in
/// memory for the next one.
TEST_F(TuneCandidatesCli, ABudgetThatIsTooSmallForACandidateIsEnlarged) {
  const Arguments grid = args("--method dpis --clip 0.1,1 --batch 64 --steps 12");
  const Finished f = run_cudp(folder_, tune_public("0.6", grid));
  ASSERT_EQ(f.exit, 0) << f.err;
  EXPECT_LE(json("release/privacy.json")["epsilon"].get<double>(), 0.6);
  EXPECT_GT(json("release/privacy.json")["training_epsilon"].get<double>(), 0.3);
  // No budget is enough.
  std::filesystem::remove_all(out());
  const Finished none = run_cudp(folder_, tune_public("0.001", grid));
  EXPECT_EQ(none.exit, 3) << none.err;
  EXPECT_NE(none.err.find("sigma: none from"), std::string::npos) << none.err;
  EXPECT_FALSE(std::filesystem::exists(out()));
}

/// Each training has features of the images, whether this process computed them (on the CPU) or
/// each training does (where the device is chosen by itself).
TEST_F(TuneCandidatesCli, TrainsOnFeatures) {
  const auto images = [&](const std::string& name, std::size_t count) {
    std::vector<float> pixels;
    std::vector<std::int64_t> labels;
    std::uint32_t state = 7;
    for (std::size_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<std::int64_t>(i % 2));
      for (int pixel = 0; pixel < 64; ++pixel) {
        state = state * 1664525u + 1013904223u;
        pixels.push_back(static_cast<float>(state >> 16) / 65536.0f +
                         (i % 2 == 1 && pixel < 32 ? 0.5f : 0.0f));
      }
    }
    write_text(folder_ / (name + ".npy"), npy_floats(count, pixels));
    write_text(folder_ / (name + "-labels.npy"), npy_labels(labels));
  };
  images("train", 300);
  images("test", 100);
  for (const std::string device : {"cpu", "auto"}) {
    const Finished f = run_cudp(
        folder_,
        with({"tune", "--dataset", folder_ / "train.npy", "--labels", folder_ / "train-labels.npy",
              "--test-data", folder_ / "test.npy", "--test-labels", folder_ / "test-labels.npy",
              "--device", device, "--out", out(device)},
             args("--test-data-is-public --classes 2 --input-shape 1x8x8 --features scatter "
                  "--feature-standardise --feature-cache none --epsilon 3 --delta 1e-5 --batch 32 "
                  "--steps 10 --lr 0.1,0.5 --runs 2 --most-runs 8 --seed 4 --threads 1 --quiet")));
    ASSERT_EQ(f.exit, 0) << device << f.err;
    EXPECT_EQ(run_cudp(folder_, {"verify", out(device)}).exit, 0) << device;
    // The noisy moments of the channels are a release of each training.
    const auto certificate = json("release/privacy.json", device);
    const auto& part = certificate["tuning"]["spending"][0];
    ASSERT_EQ(part["releases"].size(), 2u) << part;
    EXPECT_EQ(part["releases"][0]["mechanism"], "gaussian");
    EXPECT_GT(json("private/result.json", device)["test_accuracy"].get<double>(), 0.8);
  }
}

}  // namespace
}  // namespace cudp
