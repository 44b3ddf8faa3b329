#include "runtime/features/features.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/features/cache.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/scatter_images.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

unsigned mode_of(const fs::path& path) {
  struct stat s {};
  return ::stat(path.c_str(), &s) == 0 ? s.st_mode & 0777u : 0;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (fs::exists(folder))
    for (const auto& e : fs::recursive_directory_iterator(folder))
      if (e.is_regular_file()) files.push_back(e.path());
  return files;
}

/// The one file of features there.
fs::path features_in(const fs::path& folder) {
  for (const fs::path& file : files_in(folder))
    if (file.extension() == ".features") return file;
  return {};
}

class FeatureCacheTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  fs::path place_ = folder_.path() / "a" / "cudp";
  FeatureCache cache_{place_};
  std::vector<float> values_ = {1.0f, -0.0f, NAN, 3.5f};
};

TEST_F(FeatureCacheTest, GivesBackWhatItWasGivenToItsOwnerOnly) {
  EXPECT_FALSE(cache_.read("key", 4));
  cache_.write("key", values_);
  const auto got = cache_.read("key", 4);
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), 4u);
  for (std::size_t i = 0; i < 4; ++i)  // NaN and -0 too
    EXPECT_EQ(std::bit_cast<std::uint32_t>((*got)[i]), std::bit_cast<std::uint32_t>(values_[i]));
  EXPECT_FALSE(cache_.read("another key", 4));
  EXPECT_FALSE(cache_.read("key", 5));
  EXPECT_EQ(mode_of(place_), 0700u);
  ASSERT_EQ(files_in(place_).size(), 2u) << "no draft stays";
  for (const fs::path& file : files_in(place_)) EXPECT_EQ(mode_of(file), 0600u);
  EXPECT_FALSE(FeatureCache("").read("key", 4));
  EXPECT_NO_THROW(FeatureCache("").write("key", values_));
}

/// A listing of the folder lets nobody try guesses of the data.
TEST_F(FeatureCacheTest, NamesFollowFromAKeyOfTheFolder) {
  const fs::path other = folder_.path() / "other";
  cache_.write("key", values_);
  FeatureCache(other).write("key", values_);
  EXPECT_NE(features_in(place_).filename(), features_in(other).filename());
  fs::copy_file(place_ / "names", other / "names", fs::copy_options::overwrite_existing);
  FeatureCache(other).write("key", values_);
  EXPECT_TRUE(fs::exists(other / features_in(place_).filename()));
}

TEST_F(FeatureCacheTest, ADamagedFileIsNoFile) {
  cache_.write("key", values_);
  const fs::path file = features_in(place_);
  const std::string whole = content_of(file.string());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i >= 35 && i < 64) continue;  // the header and its key end there; then padding
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    write_text(file.string(), damaged);
    EXPECT_FALSE(cache_.read("key", 4)) << i;
  }
  for (const std::size_t length : {0ul, 5ul, 40ul, whole.size() - 1}) {
    write_text(file.string(), whole.substr(0, length));
    EXPECT_FALSE(cache_.read("key", 4)) << length;
  }
  write_text(file.string(), whole + "x");
  EXPECT_FALSE(cache_.read("key", 4));
  write_text(file.string(), whole);
  EXPECT_TRUE(cache_.read("key", 4));
}

TEST_F(FeatureCacheTest, SaysWhyItCannotWrite) {
  write_text(folder_ / "file", "");
  EXPECT_THROW(FeatureCache(folder_.path() / "file" / "cudp").write("key", values_), Error);
}

std::string digest_with(const std::vector<std::uint8_t>& bytes, int threads) {
  return content_digest(std::as_bytes(std::span(bytes)), threads);
}

/// The value is that of Python: hashlib.blake2b(bytes(8), digest_size=32).hexdigest().
TEST(ContentDigest, OfNothingIsThatOfItsSize) {
  EXPECT_EQ(content_digest({}, 1),
            "81e47a19e6b29b0a65b9591762ce5143ed30d0261e5d24a3201752506b20f15c");
}

TEST(ContentDigest, EveryByteAndTheSizeCountWithAnyNumberOfThreads) {
  std::vector<std::uint8_t> bytes((std::size_t{2} << 20) + 5);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  const std::string first = digest_with(bytes, 1);
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(digest_with(bytes, 3), first);
  for (const std::size_t at : {std::size_t{0}, std::size_t{1} << 20, bytes.size() - 1}) {
    bytes[at] ^= 1;
    EXPECT_NE(digest_with(bytes, 2), first) << at;
    bytes[at] ^= 1;
  }
  EXPECT_EQ(digest_with(bytes, 2), first);
  bytes.push_back(0);
  EXPECT_NE(digest_with(bytes, 1), first);
  // Blocks in another order.
  bytes.resize(std::size_t{2} << 20);
  const std::string in_order = digest_with(bytes, 1);
  bytes[3] ^= 1;  // the two blocks now differ
  const std::string changed = digest_with(bytes, 1);
  std::swap_ranges(bytes.begin(), bytes.begin() + (1 << 20), bytes.begin() + (1 << 20));
  EXPECT_NE(digest_with(bytes, 1), changed);
  EXPECT_NE(changed, in_order);
}

class MakeFeatures : public testing::Test {
 protected:
  FeatureSettings settings(int groups) const {
    return {.kind = Features::scatter, .groups = groups, .cache = folder_ / "cache", .threads = 1};
  }
  TemporaryFolder folder_;
  Backend cpu_ = choose_backend(Device::cpu);
  Reporter quiet_{true};
};

TEST_F(MakeFeatures, ComputesOnceForTheSameImages) {
  int computed = 0;
  const auto compute = cpu_.scatter;
  cpu_.scatter = [&](const Dataset& images, int threads, const WorkDone& done) {
    ++computed;
    return compute(images, threads, done);
  };
  const auto features = [&](Dataset d, int groups) {
    make_features(d, settings(groups), cpu_, quiet_);
    EXPECT_EQ(d.shape, (Shape{81, 2, 3}));
    EXPECT_TRUE(d.bytes.empty());
    EXPECT_EQ(d.floats.size(), d.size() * static_cast<std::size_t>(d.shape.size()));
    return d.floats;
  };
  const Dataset images = scatter_images(1, 8, 12);
  const std::vector<float> first = features(images, 27);
  EXPECT_EQ(features(images, 27), first);
  EXPECT_EQ(computed, 1);
  EXPECT_NE(features(images, 9), first);
  EXPECT_NE(features(images, 0), first);
  EXPECT_EQ(computed, 1) << "what is kept is what groups are made of";
  Dataset other = images;
  other.bytes[7] ^= 1;
  EXPECT_NE(features(other, 27), first);
  EXPECT_EQ(computed, 2);
  other = images;
  other.scale *= 2.0f;
  features(other, 27);
  cpu_.arithmetic_name = "another";
  features(images, 27);
  EXPECT_EQ(computed, 4);
}

/// Changes bytes so that their CRC-64 stays: it adds the polynomial of the CRC, x^64 first, which
/// leaves no remainder.
void keep_checksum(std::vector<std::uint8_t>& bytes, std::size_t at) {
  constexpr std::uint64_t kPolynomial = 0xC96C5795D7870F42;  // x^63 is its lowest bit
  bytes[at] ^= 1;
  for (std::size_t bit = 0; bit < 64; ++bit)
    if ((kPolynomial >> bit & 1) != 0)
      bytes[at + (bit + 1) / 8] ^= static_cast<std::uint8_t>(1u << (bit + 1) % 8);
}

std::uint64_t checksum_of_bytes(const std::vector<std::uint8_t>& bytes) {
  return checksum({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// A row chosen by an attacker must not give all rows the features of another data set.
TEST_F(MakeFeatures, AnImageThatForcesTheChecksumOfOtherImagesFindsNoFeatures) {
  const Dataset images = scatter_images(1, 8, 12);
  Dataset crafted = images;
  keep_checksum(crafted.bytes, 7);
  ASSERT_NE(crafted.bytes, images.bytes);
  ASSERT_EQ(checksum_of_bytes(crafted.bytes), checksum_of_bytes(images.bytes));
  const auto features = [&](Dataset d, const std::string& cache) {
    FeatureSettings s = settings(0);
    s.cache = cache;
    make_features(d, s, cpu_, quiet_);
    return d.floats;
  };
  const std::string cache = folder_ / "cache";
  const std::vector<float> first = features(images, cache);
  EXPECT_NE(features(crafted, cache), first);
  EXPECT_EQ(features(crafted, cache), features(crafted, "none"));
}

/// Whether features are in the cache depends on all rows, so those of another library, which may
/// differ in the last bits, must not be used.
TEST_F(MakeFeatures, OfOtherLibrariesAreComputedAgain) {
  int computed = 0;
  const auto compute = cpu_.scatter;
  cpu_.scatter = [&](const Dataset& images, int threads, const WorkDone& done) {
    ++computed;
    return compute(images, threads, done);
  };
  std::string version = ", cuFFT 12.0";
  cpu_.library_arithmetic = [&](const Network&, bool scatters) { return scatters ? version : ""; };
  const auto make = [&] {
    Dataset images = scatter_images(1, 8, 12);
    make_features(images, settings(0), cpu_, quiet_);
  };
  make();
  make();
  EXPECT_EQ(computed, 1);
  version = ", cuFFT 12.1";
  make();
  EXPECT_EQ(computed, 2);
}

/// Sizes of files tell the number of rows.
TEST_F(MakeFeatures, AFolderThatOthersCanListIsRefused) {
  const auto make = [&](const std::string& cache) {
    Dataset images = scatter_images(1, 8, 12);
    FeatureSettings s = settings(0);
    s.cache = cache;
    make_features(images, s, cpu_, quiet_);
  };
  const std::string cache = folder_ / "cache";
  fs::create_directory(cache);
  for (const unsigned mode : {0755u, 0750u, 0711u, 0722u}) {
    ASSERT_EQ(::chmod(cache.c_str(), mode), 0);
    EXPECT_THROW(make(cache), InputError) << mode;
    EXPECT_TRUE(files_in(cache).empty());
  }
  ASSERT_EQ(::chmod(cache.c_str(), 0700), 0);
  make(cache);
  EXPECT_EQ(files_in(cache).size(), 2u);

  // The user's own cache folder is the program's: it becomes private.
  const char* const set = std::getenv("XDG_CACHE_HOME");
  const std::optional<std::string> before = set ? std::optional<std::string>(set) : std::nullopt;
  ASSERT_EQ(::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1), 0);
  fs::create_directory(folder_ / "cudp");
  ASSERT_EQ(::chmod((folder_ / "cudp").c_str(), 0755), 0);
  make("auto");
  before ? ::setenv("XDG_CACHE_HOME", before->c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(mode_of(folder_ / "cudp"), 0700u);
  EXPECT_EQ(files_in(folder_ / "cudp").size(), 2u);
}

TEST(FeatureSettingsOf, AHoldOutKeepsNoFeatures) {
  TrainConfig config;
  config.feature_cache = "folder";
  EXPECT_EQ(feature_settings(config).cache, "folder");
  config.holdout = 0.2;
  EXPECT_EQ(feature_settings(config).cache, "none") << "two files would show the parts";
}

TEST_F(MakeFeatures, LeavesDataAloneUnlessAskedAndRefusesWhatDoesNotFit) {
  Dataset images = scatter_images(1, 8, 12);
  make_features(images, {}, cpu_, quiet_);
  EXPECT_EQ(images.shape, (Shape{1, 8, 12}));
  EXPECT_FALSE(images.bytes.empty());
  EXPECT_THROW(make_features(images, settings(4), cpu_, quiet_), InputError);
  Dataset table;
  table.shape = {14, 1, 1};
  EXPECT_THROW(make_features(table, settings(27), cpu_, quiet_), InputError);
  EXPECT_TRUE(files_in(folder_ / "cache").empty());
}

/// The program, on the built-in images.
class CliFeatures : public testing::Test {
 protected:
  Finished train(const std::string& out, const std::vector<std::string>& more) const {
    return run_cudp(folder_,
                    with({"train",   "--dataset", "glyphs",  "--features",  "scatter",
                          "--sigma", "1",         "--delta", "1e-5",        "--batch",
                          "256",     "--steps",   "10",      "--lr",        "4",
                          "--clip",  "0.1",       "--seed",  "3",           "--device",
                          "cpu",     "--json",    "--out",   folder_ / out, "--feature-cache"},
                         more));
  }
  std::string model(const std::string& out) const {
    return content_of(folder_ / (out + "/release/model.safetensors"));
  }
  TemporaryFolder folder_;
};

TEST_F(CliFeatures, TrainingAndEvalSeeTheSameFeatures) {
  const std::string cache = folder_ / "cache";
  const Finished f = train("run", {cache, "--model", "scatter-cnn"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const auto result = nlohmann::json::parse(f.out);
  EXPECT_EQ(result["parameters"], 33'066);
  EXPECT_GT(result["test_accuracy"], 0.5) << "a tenth by chance";
  EXPECT_EQ(files_in(cache).size(), 3u) << "training and test set, the key of their names";
  for (const std::string file : {"privacy.json", "config.toml", "metrics.jsonl"})
    EXPECT_EQ(content_of(folder_ / ("run/release/" + file)).find("cache"), std::string::npos);
  const auto certificate = nlohmann::json::parse(content_of(folder_ / "run/release/privacy.json"));
  EXPECT_EQ(certificate["features"], "scatter");

  const Finished e =
      run_cudp(folder_, {"eval", folder_ / "run/release", "--feature-cache", "none", "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  EXPECT_EQ(nlohmann::json::parse(e.out)["test_accuracy"], result["test_accuracy"]);

  // From the cache, or without one: the same model.
  ASSERT_EQ(train("again", {cache, "--model", "scatter-cnn"}).exit, 0);
  ASSERT_EQ(train("without", {"none", "--threads", "1"}).exit, 0);
  EXPECT_EQ(model("again"), model("run"));
  // "without" names no model: scatter-cnn is the one for features.
  EXPECT_EQ(model("without"), model("run"));
  // Other groups, another model, whose file says which.
  ASSERT_EQ(train("linear", {cache, "--model", "scatter-linear", "--feature-groups", "9"}).exit, 0);
  const TensorFile linear = decode_safetensors(model("linear"), "model");
  EXPECT_EQ(linear.metadata.at("features"), "scatter");
  EXPECT_EQ(linear.metadata.at("feature-groups"), "9");
  EXPECT_EQ(linear.metadata.at("input"), "81x7x7");
}

TEST_F(CliFeatures, RefusalsAreOneLine) {
  const SmallTable table = write_small_table(folder_);
  const Finished f = train(
      "run", {"none", "--dataset", table.table, "--schema", table.schema, "--size-is-public"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("--features scatter: expected images of at least 4 x 4"), std::string::npos)
      << f.err;
  const Finished g = train("run", {"none", "--feature-groups", "5"});
  EXPECT_EQ(g.exit, 2);
  EXPECT_NE(g.err.find("--feature-groups: expected a number that divides 81"), std::string::npos)
      << g.err;
  const Finished h = train("run", {"none", "--features", "scater"});
  EXPECT_EQ(h.exit, 2);
  EXPECT_NE(h.err.find("--features: expected one of none, scatter"), std::string::npos) << h.err;
}

}  // namespace
}  // namespace cudp
