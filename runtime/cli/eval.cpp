#include <array>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/cli/answer.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/data/load.hpp"
#include "runtime/features/features.hpp"
#include "runtime/results/predictor.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/settings/options.hpp"

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
  std::string device = "auto";
  std::string feature_cache = "auto";
  std::string embedding;
  int threads = 0;
  bool json = false;
};

/// The model of a run folder, or of its release folder alone.
fs::path model_file(const std::string& run_dir) {
  for (const fs::path& path : {fs::path(run_dir) / "release" / "model.safetensors",
                               fs::path(run_dir) / "private" / "model.safetensors",
                               fs::path(run_dir) / "model.safetensors"})
    if (fs::exists(path)) return path;
  throw InputError(run_dir + ": expected a run folder with a released model, found none");
}

Device device_named(const std::string& name) {
  TrainConfig config;
  find_option("device")->set(config, name, "--device");
  return config.device;
}

int evaluate(EvalOptions o) {
  const fs::path path = model_file(o.run_dir);
  const ReleasedModel model = read_released_model(path, {.file = o.embedding, .dir = o.data.dir});
  o.data.coder = model.coder;
  const Backend backend = choose_backend(device_named(o.device));
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
  const Metrics found =
      measure(Predictor(backend, model.network, settings).predict(model.parameters, data.examples));
  Answer a;
  for (std::size_t i = 0; i < metrics().size(); ++i) {
    const Metric& m = metrics()[i];
    a.json[m.key] = found.values[i];
    a.rows.emplace_back(m.name, m.text(found.values[i]));
  }
  a.json["test_examples"] = data.examples.size();
  a.json["dataset"] = data.name;
  a.json["model"] = model.network.spec.name;
  a.json["run_dir"] = o.run_dir;
  a.json["backend"] = backend.name;
  a.rows.emplace_back("test examples", std::to_string(data.examples.size()));
  a.rows.emplace_back("model", model.network.spec.name);
  print(a, o.json);
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand("eval", "Test accuracy of a released model");
  command->footer(kEvalExamples);
  auto o = std::make_shared<EvalOptions>();
  o->data.dir = "data";
  command->add_option("run_dir", o->run_dir, "run folder, or its release folder")->required();
  command
      ->add_option(
          "--dataset", o->data.dataset,
          "a built-in data set, whose test examples are scored, or a table, every row of which is")
      ->type_name("NAME");
  command->add_option("--data-dir", o->data.dir, "where the files of a named data set are")
      ->type_name("DIR");
  command->add_option("--schema", o->data.schema, "schema of a table given by path")
      ->type_name("FILE");
  command
      ->add_option(
          "--test-data", o->data.test_path,
          "score this table; --dataset is then the training table, for --accept-private-bounds")
      ->type_name("FILE");
  command->add_flag("--accept-private-bounds", o->data.accept_private_bounds,
                    "scale numbers by bounds read from the training data, as in training");
  command->add_option("--device", o->device, "auto, cpu or cuda")->type_name("NAME");
  command
      ->add_option("--feature-cache", o->feature_cache,
                   "where computed features are kept: a folder, auto (~/.cache/cudp) or none")
      ->type_name("DIR");
  command
      ->add_option("--embedding", o->embedding,
                   "the file of words' vectors that the model was trained with; looked for where "
                   "--data-dir has it, if not given")
      ->type_name("FILE");
  command->add_option("--threads", o->threads, "CPU threads, 0 for every core")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--json", o->json, "print JSON");
  command->callback([&body, o] { body = [o] { return evaluate(*o); }; });
}

}  // namespace cudp
