#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/clipping/clip.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/random/random.hpp"
#include "kernels/update/update.hpp"
#include "privacy/accountant.hpp"
#include "runtime/methods/noisy_min.hpp"

namespace cudp {

enum class MethodKind {
  dpsgd,
  dpsgd_ts,
  dpsgd_decay,
  adp_sgd,
  adaclip,
  dpis,
  sgd_ma,
  sgd_adv,
  norm_bound,
  dp_agd,
  outpert,
  objpert,
  privgene
};
/// Where sigma comes from: the accountant, or Theorem 4.1 of Wu et al. 2021.
enum class Calibration { accountant, theorem41 };
/// How DP-AGD shares its budget out at the start: equal parts of rho, or of epsilon as its paper.
enum class BudgetSplit { rho, epsilon };
/// From rho to epsilon: Canonne, Kamath, Steinke 2020, or Bun, Steinke 2016.
enum class Conversion { tight, classical };
enum class Device { automatic, cpu, cuda };
enum class ScheduleKind { constant, step, cosine, polynomial, square_root, adaptive };
enum class Features { none, scatter, pca };

/// Everything that `cudp train` can be told. A member's initial value is its default; what each one
/// means, and its range, stands in the table of runtime/config/options.cpp.
struct TrainConfig {
  // Data
  std::string dataset;
  std::string data_dir = "data";
  std::string schema;
  std::string test_data;
  bool test_data_is_public = false;
  bool size_is_public = false;
  bool accept_private_bounds = false;
  Features features = Features::none;
  std::int64_t feature_groups = 27;
  bool feature_standardise = false;
  double feature_second_order = 0.3;
  std::string feature_cache = "auto";
  std::int64_t feature_dimensions = 60;
  bool feature_whiten = false;
  std::optional<double> feature_share = 0.1;
  std::optional<double> feature_sigma;

  // Model
  std::string model;  ///< empty: cnn for images, logistic for tables; scatter-cnn for features
  std::string activation;

  // Privacy. No default for what a promise rests on: these stay empty until someone says them.
  std::optional<double> epsilon;
  std::optional<double> delta;
  std::optional<double> sigma;
  privacy::Accountant accountant = privacy::Accountant::best;
  double clip = 1.0;
  Clipping clipping = Clipping::flat;
  Generator rng = Generator::chacha20;
  std::optional<std::int64_t> seed;
  bool unsafe_diagnostics = false;
  bool allow_weak_privacy = false;

  // Training
  MethodKind method = MethodKind::dpsgd;
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
  double adaptive_start = 20.0;
  double adaptive_weight = 1.0;
  double adaptive_least = 1e-5;
  std::int64_t warmup = 0;
  double ema = 0.0;

  // Methods
  double noise_decay = 0.005;
  bool adp_constant_noise = false;
  double adp_noise_growth = 1e-4;
  Calibration calibration = Calibration::accountant;
  double adaclip_beta1 = 0.99;
  double adaclip_beta2 = 0.9;
  double adaclip_least = 1e-12;
  double adaclip_most = 1e-2;
  bool adaclip_literal = false;
  double dpis_multiple = 5.0;
  double dpis_floor = 0.01;
  double dpis_total_noise = 0.02;
  double dpis_first_phase = 0.8;
  bool dpis_adaptive_clip = false;
  double dpis_lambda = 1.0;

  // DP-AGD
  double splits = 0.0;
  BudgetSplit budget_split = BudgetSplit::rho;
  double gradient_share = 0.6;
  double gamma = 0.1;
  double step_shrink = 0.8;
  double loss_clip = 3.0;
  double l2 = 0.001;
  SelectionNoise noisy_min = SelectionNoise::gumbel;
  Conversion conversion = Conversion::tight;
  std::int64_t mini_batch = 0;

  // Output and objective perturbation, PrivGene
  double max_norm = 1.0;
  double huber = 0.5;
  double solver_tolerance = 1e-5;
  std::int64_t generations = 0;
  std::int64_t candidates = 200;
  std::int64_t parents = 10;

  // Machine
  Device device = Device::automatic;
  Precision precision = Precision::tf32;  ///< once prepared (experiment.hpp), what really runs
  std::int64_t threads = 0;
  std::int64_t micro_batch = 0;

  // Output
  std::string config;
  std::string out;
  std::string resume;
  bool fresh_noise = false;
  std::int64_t eval_every = 1;
  std::int64_t checkpoint_every = 0;
  bool json = false;
  bool quiet = false;
};

}  // namespace cudp
