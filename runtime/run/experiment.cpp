#include "runtime/run/experiment.hpp"

#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "kernels/features/scatter.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/nearest.hpp"
#include "runtime/config/options.hpp"
#include "runtime/data/load.hpp"
#include "runtime/features/features.hpp"
#include "runtime/methods/schedule.hpp"

namespace cudp {
namespace {

/// The largest float that is not above x.
float float_below(double x) {
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) > x ? std::nextafterf(f, 0.0f) : f;
}

std::string default_model(Features features, const Shape& shape) {
  if (features == Features::scatter)
    return shape.channels == kScatterChannels ? "scatter-cnn" : "scatter-cifar-cnn";
  return shape.height > 1 || shape.width > 1 ? "cnn" : "logistic";
}

std::vector<Dataset*> parts_of(DataSplit& data) {
  if (data.test.size() == 0) return {&data.train};
  return {&data.train, &data.test};
}

}  // namespace

std::string read_model(const std::string& name) {
  if (const std::string_view text = builtin_model(name); !text.empty()) return std::string(text);
  if (!name.ends_with(".toml"))
    throw InputError("--model: expected a known model or a .toml file, found '" + name +
                     "'; the nearest is " + nearest(name, model_names()));
  std::ifstream in(name);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    throw InputError(name + ": expected a readable model description, found none");
  return text.str();
}

Network make_network(const std::string& model_text, const std::string& source,
                     const std::string& activation, const Shape& input, int classes) {
  try {
    return build_network(parse_model(model_text, source, classes, activation), input, classes);
  } catch (const std::invalid_argument& e) {
    throw InputError(e.what());
  }
}

Experiment prepare(const TrainConfig& config, Reporter& reporter, const std::string& known_model) {
  const Backend backend = choose_backend(config.device);
  const std::string model =
      known_model.empty() && !config.model.empty() ? read_model(config.model) : known_model;
  DataSplit data = load_data({.dataset = config.dataset,
                              .dir = config.data_dir,
                              .schema = config.schema,
                              .test_path = config.test_data,
                              .test_is_public = config.test_data_is_public,
                              .accept_private_bounds = config.accept_private_bounds,
                              .size_is_public = config.size_is_public});
  for (Dataset* const part : parts_of(data))
    make_features(*part, feature_settings(config), backend, reporter);

  Experiment e;
  e.config = config;
  e.config.device = backend.name == "cuda" ? Device::cuda : Device::cpu;
  e.backend = backend;
  e.data = std::move(data);
  e.model_text = model;
  const Shape shape = released_shape(e.data.train, feature_settings(config));
  if (config.model.empty()) {
    e.config.model = default_model(config.features, shape);
    e.model_text = read_model(e.config.model);
  }
  e.network =
      make_network(e.model_text, e.config.model, config.activation, shape, e.data.train.classes);
  e.config.precision = backend.precision(e.network, config.precision);
  if (e.config.precision == Precision::tf32) e.backend.arithmetic_name += ", tf32";
  return e;
}

Experiment prepare_linear(TrainConfig config, Reporter& reporter, const std::string& known_model) {
  const auto method = std::get<std::string>(*find_option("method")->get(config));
  if (config.method != MethodKind::dp_agd) {
    if (config.device == Device::cuda)
      throw InputError("--device: expected cpu with --method " + method + ", found cuda");
    config.device = Device::cpu;
  }
  Experiment e = prepare(config, reporter, known_model);
  const Network& n = e.network;
  const bool linear = n.layers.size() == 1 && n.parameters.size() == 2 && n.outputs == 1;
  if (!linear || n.spec.loss == Loss::softmax_cross_entropy)
    throw InputError("--model: expected logistic or svm, and two classes, with --method " + method +
                     ", found " + n.spec.name + " and " + std::to_string(n.classes));
  return e;
}

void show_features(Experiment& e, std::vector<float> released) {
  e.feature_release = std::move(released);
  for (Dataset* const part : parts_of(e.data))
    apply_release(*part, feature_settings(e.config), e.feature_release, e.data.name);
}

std::unique_ptr<Engine> make_engine(const Experiment& e, const PrivacyPlan& plan,
                                    const TrainingSize& size, const RandomKey& key) {
  EngineSettings s;
  s.clip.kind = e.config.clipping;
  s.clip.max_norm = float_below(plan.clip_norm);
  s.optimizer = optimizer_settings(e.config);
  s.step_size = {.weight = e.config.adaptive_weight,
                 .period = size.steps_per_epoch(e.config.batch),
                 .least = e.config.adaptive_least};
  s.importance = e.config.method == MethodKind::dpis;
  s.coordinates = {.on = e.config.method == MethodKind::adaclip,
                   .beta1 = static_cast<float>(e.config.adaclip_beta1),
                   .beta2 = static_cast<float>(e.config.adaclip_beta2),
                   .least = static_cast<float>(e.config.adaclip_least),
                   .most = static_cast<float>(e.config.adaclip_most),
                   .literal = e.config.adaclip_literal};
  s.keep_average = e.config.ema > 0.0;
  s.generator = e.config.rng;
  s.key = key;
  s.sampling_threshold = plan.sampling_threshold;
  s.largest_sum = plan.largest_sum;
  s.micro_batch = static_cast<int>(e.config.micro_batch);
  s.precision = e.config.precision;
  s.threads = static_cast<int>(e.config.threads);
  s.diagnostics = e.config.unsafe_diagnostics;
  std::unique_ptr<Engine> engine = e.backend.make_engine(e.network, s);
  engine->load(e.data.train);
  return engine;
}

}  // namespace cudp
