// Models as ONNX files give the logits and probabilities of the engine that trains them, whatever
// their layers. What runs the files shares no code with what writes them: an interpreter in NumPy
// and, if it is installed, onnxruntime.
#include "runtime/export/onnx.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/base/protobuf.hpp"
#include "runtime/features/normalise.hpp"
#include "runtime/features/pca.hpp"
#include "runtime/results/predictions.hpp"
#include "runtime/results/predictor.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/python.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

template <class T>
std::string npy_of(const char* type, const std::vector<std::size_t>& shape,
                   const std::vector<T>& values) {
  std::string text = "(";
  for (const std::size_t side : shape) text += std::to_string(side) + ", ";
  return npy(type, text + ")", bytes_of(values));
}

constexpr std::size_t kExamples = 5;

/// A model of the case with random weights, as a run would release it.
ReleasedModel released(const cases::Case& c, const Dataset& data) {
  ReleasedModel m;
  m.dataset = "random";
  m.network = cases::network_of(c);
  m.parameters = cases::weights_for(m.network).parameters;
  if (data.is_bytes()) m.inputs.pixels = ModelInputs::Pixels{data.scale, data.shift};
  if (c.text.words > 0) {
    std::vector<std::string> words;
    for (int i = 1; i < c.text.words; ++i) words.push_back("w" + std::to_string(i));
    m.coder = std::make_shared<TextCoder>(TextCoder{
        {.tokens = c.input.width}, Vocabulary(words, Marks::none_but_zero), data.vectors, ""});
  }
  return m;
}

/// Writes model.onnx, inputs and outputs of the engine into a folder.
void write_case(const fs::path& folder, const ReleasedModel& m, Dataset data) {
  fs::create_directory(folder);
  const auto write = [&](const std::string& name, const std::string& content) {
    write_text((folder / name).string(), content);
  };
  write("model.onnx", onnx_model(m, {}, "model"));
  const auto n = data.size();
  const auto& s = data.shape;
  const std::vector<std::size_t> image = {n, static_cast<std::size_t>(s.channels),
                                          static_cast<std::size_t>(s.height),
                                          static_cast<std::size_t>(s.width)};
  if (data.is_bytes()) {
    write("pixels.in.npy", npy_of("|u1", image, data.bytes));
  } else if (data.is_text()) {
    write("tokens.in.npy",
          npy_of("<i8", {n, image[3]},
                 std::vector<std::int64_t>(data.tokens.begin(), data.tokens.end())));
    write("lengths.in.npy",
          npy_of("<i4", {n}, std::vector<std::int32_t>(data.lengths.begin(), data.lengths.end())));
  } else {
    write("features.in.npy", npy_of("<f4", {n, image[1]}, data.floats));
  }
  Predictor predictor(choose_backend(Device::cpu), m.network, {});
  predictor.set_parameters(m.parameters);
  const std::vector<float> logits = predictor.logits(data);
  const auto outputs = static_cast<std::size_t>(m.network.outputs);
  write("logits.out.npy", npy_of("<f4", {n, outputs}, logits));
  const Loss loss = m.network.spec.loss;
  if (gives_probabilities(loss)) {
    const auto classes = static_cast<std::size_t>(m.network.classes);
    std::vector<float> p(n * classes);
    for (std::size_t i = 0; i < n; ++i)
      class_probabilities(loss, std::span(logits).subspan(i * outputs, outputs),
                          std::span(p).subspan(i * classes, classes));
    write("probabilities.out.npy", npy_of("<f4", {n, classes}, p));
  } else if (has_target(loss)) {
    std::vector<double> values;
    values.reserve(logits.size());
    for (const float z : logits) values.push_back(m.inputs.target()->value(static_cast<double>(z)));
    write("value.out.npy", npy_of("<f8", {n, 1}, values));
  }
}

/// Runs every model of a folder with `program`; no output may be further off than `bound`.
void expect_same(const TemporaryFolder& folder, const std::string& python,
                 const std::string& program, std::size_t outputs, double bound) {
  const fs::path script = golden_file("").parent_path() / ".." / "support" / "onnx_models.py";
  const ShellResult r = run_shell(
      folder, python + " '" + script.string() + "' " + program + " " + (folder / "models") + "/*");
  ASSERT_EQ(r.exit, 0) << r.err;
  std::istringstream lines(r.out);
  std::string model, output;
  double error = 0.0, largest = 0.0;
  std::size_t count = 0;
  while (lines >> model >> output >> error) {
    EXPECT_TRUE(error <= bound) << model << ", " << output << ": " << error;
    largest = std::max(largest, error);
    ++count;
  }
  EXPECT_EQ(count, outputs) << r.out;
  std::printf("%s: %zu outputs, largest difference %.2g\n", program.c_str(), count, largest);
}

/// Parameter: what runs the files.
class Onnx : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string program = GetParam();
    python_ = python_with(program);
    if (python_.empty()) GTEST_SKIP() << "python3 with " << program << " is missing";
    fs::create_directory(folder_ / "models");
  }

  void add(const std::string& name, const ReleasedModel& m, const Dataset& data) {
    write_case(folder_.path() / "models" / name, m, data);
    outputs_ += m.network.spec.loss == Loss::hinge ? 1 : 2;
  }
  /// onnxruntime works in float32, as the engine does, and the interpreter in double.
  void check() const {
    expect_same(folder_, python_, GetParam(), outputs_,
                GetParam() == std::string("numpy") ? 1e-6 : 2e-6);
  }

  std::string python_;
  TemporaryFolder folder_;
  std::size_t outputs_ = 0;
};

TEST_P(Onnx, ModelsOfEveryLayerGiveTheEnginesAnswers) {
  for (const auto* const list : {&cases::kCases[0], &cases::kTextCases[0]}) {
    const std::size_t count =
        list == &cases::kCases[0] ? std::size(cases::kCases) : std::size(cases::kTextCases);
    for (std::size_t i = 0; i < count; ++i) {
      const Dataset data = cases::examples_for(list[i], kExamples);
      add(list[i].name, released(list[i], data), data);
    }
  }
  check();
}

constexpr const char* kTargetSchema = R"(columns = [
  {name = "x", kind = "numeric", min = 0, max = 1, edges = [0.25, 0.5, 0.75]},
  {name = "days", kind = "target", min = -30, max = 365},
]
)";

/// Numbers that are normalised first, components of images, and a target in its own unit.
TEST_P(Onnx, WhatStandsBeforeAndBehindTheLayersIsInTheFile) {
  const cases::Case linear{"linear", "linear", {5, 1, 1}, 1};
  Dataset rows = cases::examples_for(linear, kExamples);
  rows.targets.assign(kExamples, 0.0f);
  ReleasedModel m = released(linear, rows);
  m.inputs.schema = parse_schema(kTargetSchema, "schema");
  m.parameters.back() = 0.9f;  // some outputs are beyond the bounds
  add("target", m, rows);
  for (const Normalise how : {Normalise::unit, Normalise::layer}) {
    const cases::Case c{"logistic", "logistic", {13, 1, 1}, 2};
    const Dataset data = cases::examples_for(c, kExamples);
    ReleasedModel n = released(c, data);
    // The engine is given what is normalised, the file what is not.
    n.features.normalise = how;
    Dataset scaled = data;
    for (float& x : scaled.floats) x *= 37.5f;
    std::fill_n(scaled.floats.begin(), 13, 0.0f);
    Dataset normalised = scaled;
    normalise_rows(normalised.floats, 13, how, 1);
    const std::string name = how == Normalise::unit ? "unit" : "layer";
    add(name, n, normalised);
    write_text((folder_.path() / "models" / name / "features.in.npy").string(),
               npy_of("<f4", {kExamples, 13}, scaled.floats));
  }
  const cases::Case image{"image", "logistic", {2, 3, 4}, 3};
  const Dataset pixels = cases::examples_for(image, kExamples);
  const cases::Case few{"components", "logistic", {4, 1, 1}, 3};
  ReleasedModel p = released(few, pixels);
  p.features.kind = Features::pca;
  p.features.dimensions = 4;
  for (int i = 0; i < 4 * 24; ++i)
    p.feature_release.push_back(static_cast<float>((i * 7) % 11 - 5) / 16.0f);
  Dataset projected = pixels;
  project(projected, p.feature_release, 1);
  add("components", p, projected);
  fs::remove(folder_.path() / "models" / "components" / "features.in.npy");
  write_text((folder_.path() / "models" / "components" / "pixels.in.npy").string(),
             npy_of("|u1", {kExamples, 24}, pixels.bytes));
  check();
}

INSTANTIATE_TEST_SUITE_P(Programs, Onnx, testing::Values("numpy", "onnxruntime"),
                         [](const auto& info) { return std::string(info.param); });

/// The wire format's own examples (protobuf.dev/programming-guides/encoding).
TEST(ProtoMessage, IsTheWireFormat) {
  ProtoMessage m;
  m.integer(1, 150);
  EXPECT_EQ(m.bytes(), "\x08\x96\x01");
  ProtoMessage outer;
  outer.text(2, "testing");
  outer.message(3, m);
  outer.integer(4, -2);
  outer.real(5, 1.0f);
  EXPECT_EQ(outer.bytes(), std::string("\x12\x07testing\x1a\x03\x08\x96\x01"
                                       "\x20\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                                       "\x2d\0\0\x80\x3f",
                                       9 + 5 + 11 + 5));
}

}  // namespace
}  // namespace cudp
