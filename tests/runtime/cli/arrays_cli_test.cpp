// Images and numbers to predict from .npy and .npz files: training, scoring, predictions, checks.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cudp_process.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/small_data.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// Grey images of 28 x 28 bytes, whose label is the brightest of three stripes.
struct StripedImages {
  std::string pixels;
  std::string labels;

  StripedImages(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t label = random() % 3;
      labels += static_cast<char>(label);
      for (std::size_t p = 0; p < 784; ++p)
        pixels += static_cast<char>(random() % 60 + (p / 28 / 10 == label ? 190 : 0));
    }
  }
  std::string x(const std::string& sides = "28, 28") const {
    return npy("|u1", "(" + std::to_string(labels.size()) + ", " + sides + ")", pixels);
  }
  std::string y() const { return npy("|u1", "(" + std::to_string(labels.size()) + ",)", labels); }
};

class ArraysCli : public testing::Test {
 protected:
  ArraysCli() {
    small_data::write_grey_images(folder_.path() / "stripes", "train", train_.pixels,
                                  train_.labels);
    small_data::write_grey_images(folder_.path() / "stripes", "t10k", test_.pixels, test_.labels);
    write_text(folder_ / "stripes.npz", zip({{"x.npy", train_.x()}, {"y.npy", train_.y()}}));
    write_text(folder_ / "held.npz", zip({{"X.npy", test_.x("1, 28, 28")}, {"Y.npy", test_.y()}}));
    fs::create_directory(folder_.path() / "keras");
    write_text(keras(), zip({{"x_train.npy", train_.x("784")},
                             {"y_train.npy", train_.y()},
                             {"x_test.npy", test_.x()},
                             {"y_test.npy", test_.y()}}));
  }

  /// A file with training and test images, of the data set's name.
  std::string keras() const { return folder_ / "keras/stripes.npz"; }
  Finished cudp(const Arguments& words) const { return run_cudp(folder_, words); }
  Finished train(const std::string& out, const Arguments& more) const {
    return cudp(with({"train",    "--epsilon", "8",
                      "--delta",  "1e-3",      "--seed",
                      "3",        "--batch",   "40",
                      "--steps",  "12",        "--lr",
                      "0.5",      "--threads", "1",
                      "--quiet",  "--out",     folder_ / out,
                      "--device", "cpu",       "--test-data-is-public"},
                     more));
  }
  /// The files of release/ without pictures.
  std::map<std::string, std::string> released(const std::string& run) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_.path() / run / "release"))
      if (entry.path().extension() != ".png")
        files[entry.path().filename()] = content_of(entry.path());
    return files;
  }
  /// The file's lines that do not name files of data, or how they are read.
  static std::string settings_of(const std::string& config) {
    std::istringstream in(config);
    std::string kept;
    for (std::string line; std::getline(in, line);) {
      bool names = false;
      for (const char* key :
           {"dataset =", "test-data =", "arrays =", "test-arrays =", "input-shape ="})
        names = names || line.starts_with(key);
      if (!names) kept += line + "\n";
    }
    return kept;
  }

  TemporaryFolder folder_;
  StripedImages train_{1, 300};
  StripedImages test_{2, 60};
};

/// The same images in a folder of IDX files and in arrays give the same bytes in release/.
TEST_F(ArraysCli, ImagesTrainAsIdxFilesDo) {
  for (const char* model : {"cnn", "logistic"}) {
    const Arguments how = {"--classes", "3", "--model", model};
    const std::string idx = std::string("idx-") + model, npz = std::string("npz-") + model,
                      rows = std::string("keras-") + model;
    const Finished first = train(idx, with({"--dataset", folder_ / "stripes"}, how));
    ASSERT_EQ(first.exit, 0) << first.err;
    const Finished second = train(
        npz,
        with({"--dataset", folder_ / "stripes.npz", "--test-data", folder_ / "held.npz"}, how));
    ASSERT_EQ(second.exit, 0) << second.err;
    const Finished third =
        train(rows, with({"--dataset", keras(), "--arrays", "x_train,y_train", "--test-data",
                          keras(), "--test-arrays", "x_test,y_test", "--input-shape", "28x28"},
                         how));
    ASSERT_EQ(third.exit, 0) << third.err;
    const auto expected = released(idx);
    EXPECT_TRUE(expected.contains("model.safetensors"));
    for (const std::string& run : {npz, rows}) {
      auto found = released(run);
      for (const auto& [name, bytes] : expected) {
        if (name == "config.toml") {
          EXPECT_EQ(settings_of(bytes), settings_of(found[name])) << run;
          continue;
        }
        // Pages have a line with the setting --dataset.
        if (name == "report.html" || name == "PRIVACY.txt") {
          EXPECT_FALSE(found[name].empty()) << run;
          continue;
        }
        EXPECT_EQ(bytes, found[name]) << run << ": " << name;
      }
      EXPECT_EQ(found.size(), expected.size());
      const Finished verified = cudp({"verify", folder_ / run});
      EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
    }
  }
}

/// A model of images scores arrays in every form, and refuses what it was not trained on.
TEST_F(ArraysCli, AModelOfImagesScoresArrays) {
  const Finished trained =
      train("run", {"--dataset", folder_ / "stripes.npz", "--classes", "3", "--model", "cnn"});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const auto eval = [&](const Arguments& data) {
    return cudp(with({"eval", folder_ / "run", "--json", "--device", "cpu"}, data));
  };
  const Finished idx = eval({"--dataset", folder_ / "stripes"});
  ASSERT_EQ(idx.exit, 0) << idx.err;
  write_text(folder_ / "rows.npy", test_.x("784"));
  write_text(folder_ / "last.npy", test_.x("28, 28, 1"));
  write_text(folder_ / "labels.npy", test_.y());
  const auto loss = [](const Finished& f) {
    return nlohmann::json::parse(f.out).at("test_loss").dump();
  };
  for (const Arguments& data :
       {Arguments{folder_ / "held.npz"}, Arguments{keras(), "--arrays", "x_test,y_test"},
        Arguments{folder_ / "rows.npy", "--labels", folder_ / "labels.npy"},
        Arguments{folder_ / "last.npy", "--channels-last", "--labels", folder_ / "labels.npy"}}) {
    const Finished f = eval(with({"--dataset"}, data));
    ASSERT_EQ(f.exit, 0) << f.err;
    EXPECT_EQ(loss(f), loss(idx)) << data[0];
  }
  std::string csv;
  for (const Arguments& data : {Arguments{folder_ / "rows.npy"}, Arguments{folder_ / "held.npz"},
                                Arguments{keras(), "--arrays", "x_test"}}) {
    const Finished f = cudp(with(
        {"predict", folder_ / "run", "--out", folder_ / "p.csv", "--device", "cpu", "--dataset"},
        data));
    ASSERT_EQ(f.exit, 0) << f.err;
    if (csv.empty()) csv = content_of(folder_ / "p.csv");
    EXPECT_EQ(content_of(folder_ / "p.csv"), csv) << data[0];
    EXPECT_EQ(lines_of(csv).size(), 61u);
  }
  write_text(folder_ / "floats.npy",
             npy("<f4", "(1, 28, 28)", std::string(std::size_t{784} * 4, '\0')));
  const Finished floats = cudp({"predict", folder_ / "run", "--dataset", folder_ / "floats.npy",
                                "--out", folder_ / "f.csv"});
  EXPECT_EQ(floats.exit, 2);
  EXPECT_NE(floats.err.find("expected numbers of type uint8, as " + (folder_ / "run") +
                            " was trained on, found floating-point numbers"),
            std::string::npos)
      << floats.err;
}

/// A number is predicted from an array: bounds in the model, errors in its unit, a check that
/// holds.
TEST_F(ArraysCli, NumbersArePredictedFromArrays) {
  std::mt19937_64 random(4);
  std::normal_distribution<float> normal;
  const auto write = [&](const std::string& name, std::size_t rows) {
    std::vector<float> x, y;
    for (std::size_t i = 0; i < rows; ++i) {
      float target = 20.0f;
      for (int k = 0; k < 4; ++k) {
        x.push_back(normal(random));
        target += static_cast<float>(k - 1) * 3.0f * x.back();
      }
      y.push_back(target);
    }
    write_text(folder_ / name,
               zip({{"x.npy", npy_floats(rows, x)},
                    {"y.npy", npy("<f4", "(" + std::to_string(rows) + ",)", bytes_of(y))}}));
  };
  write("houses.npz", 2'000);
  write("more.npz", 500);
  const Arguments bounds = {"--target-bounds", "-20,60"};
  const Finished trained =
      train("run", with({"--dataset", folder_ / "houses.npz", "--test-data", folder_ / "more.npz",
                         "--batch", "200", "--steps", "150", "--clip", "0.5"},
                        bounds));
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const Finished verified = cudp({"verify", folder_ / "run"});
  EXPECT_EQ(verified.exit, 0) << verified.out << verified.err;
  const Finished eval =
      cudp({"eval", folder_ / "run", "--dataset", folder_ / "more.npz", "--json"});
  ASSERT_EQ(eval.exit, 0) << eval.err;
  const auto figures = nlohmann::json::parse(eval.out);
  EXPECT_LT(figures.at("rmse").get<double>(), 0.5 * figures.at("mean_baseline_rmse").get<double>());
  const Finished predicted = cudp(
      {"predict", folder_ / "run", "--dataset", folder_ / "more.npz", "--out", folder_ / "p.csv"});
  ASSERT_EQ(predicted.exit, 0) << predicted.err;
  const auto lines = lines_of(content_of(folder_ / "p.csv"));
  ASSERT_EQ(lines.size(), 501u);
  EXPECT_EQ(lines[0], "row,prediction");
  // Other bounds in the settings than in the model are a contradiction.
  std::string config = content_of(folder_ / "run/release/config.toml");
  config.replace(config.find("-20,60"), 6, "-20,61");
  write_text(folder_ / "run/release/config.toml", config);
  EXPECT_EQ(cudp({"verify", folder_ / "run"}).exit, 1);
}

/// A resumed run keeps the shape that it began with.
TEST_F(ArraysCli, AResumeKeepsHowArraysAreRead) {
  ASSERT_EQ(train("run", {"--dataset", keras(), "--arrays", "x_train,y_train", "--input-shape",
                          "28x28", "--classes", "3", "--model", "logistic"})
                .exit,
            0);
  const Finished f = cudp({"train", "--resume", folder_ / "run", "--input-shape", "14x56"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("--input-shape: expected \"28x28\" as in the run being resumed, found "
                       "\"14x56\""),
            std::string::npos)
      << f.err;
}

TEST_F(ArraysCli, WrongArraysEndWithOneLine) {
  write_text(folder_ / "rgb.npz", zip({{"x.npy", npy("|u1", "(2, 4, 4, 3)", std::string(96, 'a'))},
                                       {"y.npy", npy_labels({0, 1})}}));
  const auto line_of = [&](const Arguments& words) {
    const Finished f = train("run", words);
    EXPECT_EQ(f.exit, 2);
    EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
    EXPECT_FALSE(fs::exists(folder_ / "run"));
    return f.err;
  };
  const auto has = [](const std::string& line, const std::string& part) {
    EXPECT_NE(line.find(part), std::string::npos) << line;
  };
  has(line_of({"--dataset", folder_ / "rgb.npz", "--classes", "2"}),
      "expected images [N, C, H, W]; --channels-last reads [N, H, W, C]");
  has(line_of({"--dataset", keras(), "--classes", "3"}),
      "--arrays NAME,NAME names others, found 'x_train', 'y_train', 'x_test', 'y_test'");
  has(line_of({"--dataset", folder_ / "stripes.npz"}),
      "(or --target-bounds LOW,HIGH for a number to predict)");
  has(line_of({"--dataset", folder_ / "stripes.npz", "--target-bounds", "5,1"}),
      "--target-bounds: expected two numbers, the smaller one first, such as 0,100, found '5,1'");
  has(line_of({"--dataset", folder_ / "stripes.npz", "--classes", "3", "--input-shape", "29x28"}),
      "expected examples of 1x29x28 (--input-shape)");
  has(line_of({"--dataset", folder_ / "stripes", "--classes", "3", "--channels-last"}),
      "expected with a .npy or .npz file only, found with ");
}

}  // namespace
}  // namespace cudp
