#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/clip.hpp"
#include "kernels/random.hpp"
#include "kernels/update.hpp"

namespace cudp {

enum class Method { dpsgd };
enum class Device { automatic, cpu, cuda };
enum class Features { none, scatter };
enum class ScheduleKind { constant, step, cosine, polynomial };

/// Everything that `cudp train` can be told. A member's initial value is its default; what each one
/// means, and its range, stands in the table of runtime/config/options.cpp.
struct TrainConfig {
  // Data
  std::string dataset;
  std::string data_dir = "data";
  std::string schema;
  std::string test_data;
  bool size_is_public = false;
  bool accept_private_bounds = false;
  Features features = Features::none;
  std::int64_t feature_groups = 27;
  std::string feature_cache = "auto";

  // Model
  std::string model;  ///< empty: cnn for images, logistic for tables; scatter-cnn for features
  std::string activation;

  // Privacy. No default for what a promise rests on: these stay empty until someone says them.
  std::optional<double> epsilon;
  std::optional<double> delta;
  std::optional<double> sigma;
  double clip = 1.0;
  Clipping clipping = Clipping::flat;
  Generator rng = Generator::chacha20;
  std::optional<std::int64_t> seed;
  bool unsafe_diagnostics = false;

  // Training
  Method method = Method::dpsgd;
  std::string preset;
  std::int64_t batch = 512;
  std::optional<std::int64_t> epochs = 20;
  std::optional<std::int64_t> steps;
  double lr = 0.5;
  OptimizerKind optimizer = OptimizerKind::momentum;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double weight_decay = 0.0;
  ScheduleKind schedule = ScheduleKind::constant;
  std::int64_t decay_every = 10;
  double decay_factor = 0.5;
  double final_lr = 0.0;
  double poly_a = 20.0;
  double poly_c = 1.0;
  std::int64_t warmup = 0;
  double ema = 0.0;

  // Machine
  Device device = Device::automatic;
  std::int64_t threads = 0;
  std::int64_t micro_batch = 0;

  // Output
  std::string config;
  std::string out;
  std::string resume;
  std::int64_t eval_every = 1;
  std::int64_t checkpoint_every = 0;
  bool json = false;
  bool quiet = false;
};

}  // namespace cudp
