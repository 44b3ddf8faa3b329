#include <array>
#include <filesystem>
#include <memory>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/data/load.hpp"
#include "runtime/features/features.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/results/predictor.hpp"
#include "runtime/results/released_model.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kEvalExamples = R"(Examples:
  cudp eval runs/short --dataset glyphs
  cudp eval runs/mnist/release --dataset mnist --data-dir data --json
  cudp eval runs/mine --dataset new_patients.csv --schema patients.toml
  cudp eval runs/reviews --dataset imdb --data-dir data
)";

struct EvalOptions {
  std::string run_dir;
  DataRequest data;
  Device device = Device::automatic;
  std::string feature_cache;
  std::string embedding;
  int threads = 0;
  bool json = false;
};

struct EvalFlags {
  std::string run_dir;
};

std::vector<Option> eval_options() {
  using namespace option_rows;
  return {
      positional(text("run_dir", "TEXT", &EvalFlags::run_dir, "run folder, or its release folder")),
      shared_option("dataset",
                    "a built-in data set, whose test examples are scored, or a table, every row of "
                    "which is"),
      shared_option("data-dir", "where the files of a named data set are"),
      shared_option("schema", "schema of a table given by path"),
      shared_option("test-data",
                    "score this table; --dataset is then the training table, for "
                    "--accept-private-bounds"),
      shared_option("accept-private-bounds",
                    "scale numbers by bounds read from the training data, as in training"),
      shared_option("device", "auto, cpu or cuda"),
      shared_option("feature-cache",
                    "where computed features are kept: a folder, auto (~/.cache/cudp) or none"),
      shared_option("embedding",
                    "the file of words' vectors that the model was trained with; looked for where "
                    "--data-dir has it, if not given"),
      shared_option("threads", "CPU threads, 0 for every core"),
      json_option(),
  };
}

EvalOptions options_of(const TrainConfig& c) {
  EvalOptions o;
  o.run_dir = c.of<EvalFlags>().run_dir;
  o.data.dataset = c.dataset;
  o.data.dir = c.data_dir;
  o.data.schema = c.schema;
  o.data.test_path = c.test_data;
  o.data.accept_private_bounds = c.accept_private_bounds;
  o.device = c.device;
  o.feature_cache = c.feature_cache;
  o.embedding = c.of<TextOptions>().embedding;
  o.threads = static_cast<int>(c.threads);
  o.json = c.json;
  return o;
}

/// The model of a run folder, or of its release folder alone.
fs::path model_file(const std::string& run_dir) {
  for (const fs::path& path : {fs::path(run_dir) / "release" / "model.safetensors",
                               fs::path(run_dir) / "private" / "model.safetensors",
                               fs::path(run_dir) / "model.safetensors"})
    if (fs::exists(path)) return path;
  throw InputError(run_dir + ": expected a run folder with a released model, found none");
}

int evaluate(EvalOptions o) {
  const fs::path path = model_file(o.run_dir);
  const ReleasedModel model = read_released_model(path, {.file = o.embedding, .dir = o.data.dir});
  o.data.coder = model.coder;
  const Backend backend = choose_backend(o.device);
  if (o.data.dataset.empty()) o.data.dataset = model.dataset;
  if (!is_named_dataset(o.data.dataset) && fs::is_directory(o.data.dataset))
    o.data.classes = model.network.classes;
  TestData data = load_test_data(o.data);
  FeatureSettings features = model.features;
  features.cache = o.feature_cache;
  features.threads = o.threads;
  Reporter reporter(o.json);
  make_features(data.examples, features, backend, reporter);
  apply_release(data.examples, features, model.feature_release, data.name);
  const auto shape = [](const Shape& s) {
    return fmt::format("{}x{}x{}", s.channels, s.height, s.width);
  };
  if (data.examples.is_text() != (model.coder != nullptr))
    throw InputError(data.name + ": expected " + (model.coder != nullptr ? "texts" : "no texts") +
                     ", as " + o.run_dir + " was trained on, found the other");
  if (data.examples.shape != model.network.input || data.examples.classes != model.network.classes)
    throw InputError(fmt::format(
        "{}: expected examples of shape {} in {} classes, as {} was trained on, found {} in {}",
        data.name, shape(model.network.input), model.network.classes, o.run_dir,
        shape(data.examples.shape), data.examples.classes));

  EngineSettings settings;
  settings.threads = o.threads;
  const Evaluation found = evaluate(
      Predictor(backend, model.network, settings).predict(model.parameters, data.examples));
  Answer a{.json = to_json(found, {}), .rows = table_of(found, {})};
  if (!is_named_dataset(o.data.dataset))
    reporter.warn(
        "these are exact numbers of the rows that were scored, and no certificate covers them: do "
        "not publish them if the rows are private");
  a.json["dataset"] = data.name;
  a.json["model"] = model.network.spec.name;
  a.json["run_dir"] = o.run_dir;
  a.json["backend"] = backend.name;
  a.rows.emplace_back("model", model.network.spec.name);
  print(a, o.json);
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "eval",
               .description = "Test accuracy of a released model",
               .examples = kEvalExamples,
               .options = eval_options(),
               .run = [](const TrainConfig& c) { return evaluate(options_of(c)); }});
}

}  // namespace cudp
