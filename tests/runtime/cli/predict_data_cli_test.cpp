// `cudp predict` of texts and images, and the Python of the guide's page on predictions.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/base/safetensors.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/predict_fixture.hpp"
#include "tests/support/python.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST_F(Predict, OfTexts) {
  std::string notes = "note,ill,who\n";
  std::string words = "bad\ngood\nday\n";
  for (int i = 0; i < 400; ++i)
    notes += std::string(i % 2 == 0 ? "a good day,no" : "\"a bad day, so bad\",yes") + ",n" +
             std::to_string(i) + "\n";
  write_text(folder_ / "notes.csv", notes);
  write_text(folder_ / "words.txt", words);
  write_text(folder_ / "notes.toml", R"(columns = [
  {name = "note", kind = "text"},
  {name = "ill", kind = "label", values = ["no", "yes"]},
  {name = "who", kind = "id"},
]
)");
  const Finished f = cudp({"train",
                           "--dataset",
                           folder_ / "notes.csv",
                           "--schema",
                           folder_ / "notes.toml",
                           "--vocabulary",
                           folder_ / "words.txt",
                           "--tokens",
                           "8",
                           "--model",
                           "sentences-lstm",
                           "--method",
                           "sgd",
                           "--optimizer",
                           "adam",
                           "--lr",
                           "0.01",
                           "--batch",
                           "50",
                           "--epochs",
                           "5",
                           "--threads",
                           "1",
                           "--quiet",
                           "--out",
                           folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  write_text(folder_ / "new.csv", "who,note\nx,a good day\ny,\"a bad day, so bad\"\n");
  const std::vector<std::string> lines = predictions();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "id,prediction,p_no,p_yes");
  EXPECT_TRUE(lines[1].starts_with("x,no,")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("y,yes,")) << lines[2];
}

/// Images have row numbers and classes that are numbers. The scale of pixels is the model's.
TEST_F(Predict, OfImages) {
  std::string pixels;
  std::string labels;
  for (int i = 0; i < 200; ++i) {
    const int label = i % 3;
    labels += static_cast<char>(label);
    for (int p = 0; p < 16; ++p)
      pixels += static_cast<char>(p / 5 == label ? 200 + (i * 7 + p) % 50 : (i * 5 + p * 3) % 60);
  }
  fs::create_directory(folder_ / "images");
  for (const char* part : {"train", "t10k"}) {
    const std::string stem = folder_ / (std::string("images/") + part);
    write_text(stem + "-images-idx3-ubyte", idx_images(200, 4, 4, pixels));
    write_text(stem + "-labels-idx1-ubyte", idx_labels(200, labels));
  }
  const Finished trained = cudp({"train", "--dataset", folder_ / "images", "--classes", "3",
                                 "--model", "mlp", "--method", "sgd", "--batch", "50", "--epochs",
                                 "20", "--threads", "1", "--quiet", "--out", folder_ / "run"});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const auto out = [&](const std::string& model) {
    const Finished f = cudp({"predict", model, "--dataset", folder_ / "images", "--out", "-"});
    EXPECT_EQ(f.exit, 0) << f.err;
    return lines_of(f.out);
  };
  const std::vector<std::string> lines = out(folder_ / "run");
  ASSERT_EQ(lines.size(), 201u);
  EXPECT_EQ(lines[0], "row,prediction,p_0,p_1,p_2");
  int right = 0;
  for (int i = 0; i < 200; ++i) {
    const std::vector<std::string> cells = cells_of(lines[static_cast<std::size_t>(i) + 1]);
    EXPECT_EQ(cells[0], std::to_string(i + 1));
    right += cells[1] == std::to_string(i % 3) ? 1 : 0;
  }
  EXPECT_GT(right, 180);
  TensorFile model =
      decode_safetensors(content_of(folder_ / "run/private/model.safetensors"), "model");
  EXPECT_EQ(std::stof(model.metadata.at("pixel-scale")), 1.0f / 255.0f);
  EXPECT_EQ(model.metadata.at("pixel-shift"), "0");
  model.metadata["pixel-scale"] = "0";  // every image is the same
  write_text(folder_ / "black.safetensors", encode_safetensors(model));
  const std::vector<std::string> black = out(folder_ / "black.safetensors");
  for (std::size_t i = 2; i < black.size(); ++i)
    EXPECT_EQ(black[i].substr(black[i].find(',')), black[1].substr(black[1].find(',')));
  model.metadata["pixel-scale"] = "large";
  write_text(folder_ / "black.safetensors", encode_safetensors(model));
  expect_refused(
      {"predict", folder_ / "black.safetensors", "--dataset", folder_ / "images", "--out", "-"},
      {"pixel-scale: expected a finite number, found 'large'"});
}

/// The n-th block of Python on the guide's page, put into a file.
std::string python_of_guide(const TemporaryFolder& folder, int n) {
  const std::string page = content_of(golden_file("published_deltas.json").parent_path() /
                                      "../../runtime/guide/predictions.md");
  std::size_t begin = 0;
  for (int i = 0; i <= n; ++i) begin = page.find("```python\n", begin) + 10;
  const std::string file = folder / ("guide" + std::to_string(n) + ".py");
  write_text(file, page.substr(begin, page.find("```", begin) - begin));
  return file;
}

TEST_F(Predict, TheGuidesPythonReproducesAccuraciesOfATable) {
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "python3 with numpy is missing";
  train("run", {"--seed", "3"});
  const Finished f =
      cudp({"export", folder_ / "run", "--to", "python", "--out", folder_ / "scorer.py"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const ShellResult r = run_shell(folder_, python + " -B " + python_of_guide(folder_, 0) + " " +
                                               (folder_ / "new.csv") + " died");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(std::stod(r.out), eval()["test_accuracy"].get<double>());
}

TEST_F(Predict, TheGuidesPythonReproducesAccuraciesOfACnn) {
  const std::string python = python_with("numpy, safetensors, torch");
  if (python.empty()) GTEST_SKIP() << "python3 with numpy, safetensors and torch is missing";
  std::string pixels(std::size_t{300} * 784, '\0');
  std::string labels;
  for (std::size_t i = 0; i < 300; ++i) {
    labels += static_cast<char>(i % 10);
    for (std::size_t p = 0; p < 784; ++p)
      pixels[784 * i + p] =
          static_cast<char>(p / 78 == i % 10 ? 120 + (i * p) % 130 : (i + p) % 90);
  }
  fs::create_directory(folder_ / "images");
  for (const char* part : {"train", "t10k"}) {
    const std::string stem = folder_ / (std::string("images/") + part);
    write_text(stem + "-images-idx3-ubyte", idx_images(300, 28, 28, pixels));
    write_text(stem + "-labels-idx1-ubyte", idx_labels(300, labels));
  }
  const Finished f = cudp({"train", "--dataset", folder_ / "images", "--model", "cnn", "--epsilon",
                           "8", "--delta", "1e-5", "--batch", "60", "--steps", "30", "--threads",
                           "1", "--size-is-public", "--quiet", "--out", folder_ / "run"});
  ASSERT_EQ(f.exit, 0) << f.err;
  const Finished e = cudp({"eval", folder_ / "run", "--dataset", folder_ / "images", "--json"});
  ASSERT_EQ(e.exit, 0) << e.err;
  const ShellResult r =
      run_shell(folder_, python + " " + python_of_guide(folder_, 1) + " " +
                             (folder_ / "run/release") + " " + (folder_ / "images"));
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_NEAR(std::stod(r.out), Json::parse(e.out)["test_accuracy"].get<double>(), 0.5 / 300);
}

}  // namespace
}  // namespace cudp
