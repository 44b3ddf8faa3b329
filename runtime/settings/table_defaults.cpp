#include "runtime/settings/table_defaults.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include <spdlog/fmt/fmt.h>

#include "privacy/rdp/gaussian.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/methods/schedule.hpp"

namespace cudp {
namespace {

// Constants of the rule for tables, from the measurements in bench/results/tables.md.
/// Number of steps that a training on a table has by default; the number of epochs follows from it.
constexpr double kTableSteps = 500.0;
/// Maximum number of epochs that choose_for_table() chooses.
constexpr std::int64_t kMaxEpochs = 100;
/// Default of the option --ema for tables: decay of the moving average of the weights, which is
/// released.
constexpr double kTableAverage = 0.99;

/// Constants of the rule for linear models of tables (choose_for_table()); classification and
/// regression have different ones.
struct TaskNumbers {
  double max_travel;   ///< maximum path length of the weights: sum over the steps of learning rate
                       ///< times clipping norm
  double travel;       ///< path length of the weights per unit of signal-to-noise ratio
  double min_clip;     ///< smallest clipping norm
  double max_clip;     ///< largest clipping norm
  double clip;         ///< clipping norm per unit of signal-to-noise ratio
  double adam_travel;  ///< sum of the learning rates of all steps, for adam and adamw
};
constexpr TaskNumbers kClassNumbers{.max_travel = 16000.0,
                                    .travel = 20.0,
                                    .min_clip = 0.5,
                                    .max_clip = 0.5,
                                    .clip = 0.0,
                                    .adam_travel = 50.0};
constexpr TaskNumbers kTargetNumbers{.max_travel = 120.0,
                                     .travel = 0.4,
                                     .min_clip = 0.1,
                                     .max_clip = 0.5,
                                     .clip = 1.0 / 1500.0,
                                     .adam_travel = 1.5};

constexpr std::string_view kTableKeys[] = {"batch", "epochs", "lr", "ema", "clip"};

bool is_open(const TrainConfig& config, std::string_view key) {
  return std::ranges::find(config.of<LeftOpen>().keys, key) != config.of<LeftOpen>().keys.end();
}

/// Rounds a computed learning rate or clipping norm to two significant digits, and limits it to the
/// valid range.
double two_digits(double x) {
  x = std::clamp(x, 1e-12, 1e12);
  const double unit = std::pow(10.0, std::floor(std::log10(x)) - 1.0);
  return std::strtod(fmt::format("{:.1e}", std::round(x / unit) * unit).c_str(), nullptr);
}

std::int64_t whole(double x, std::int64_t high) {
  return std::clamp(static_cast<std::int64_t>(std::llround(x)), std::int64_t{1}, high);
}

std::int64_t whole_rows(const TrainingSize& size) {
  return static_cast<std::int64_t>(std::fmin(std::floor(size.value), 0x1p53));
}

double steps_of(const TrainConfig& config, const TrainingSize& size) {
  if (config.steps) return static_cast<double>(*config.steps);
  return static_cast<double>(*config.epochs) *
         static_cast<double>(size.steps_per_epoch(config.batch));
}

/// Returns an approximation of the privacy of the whole training: mu of the single Gaussian
/// mechanism (Gaussian DP) that is equivalent to it.
double mu_of_training(const TrainConfig& config, const TrainingSize& size) {
  if (!config.sigma) return privacy::gaussian_mu(*config.epsilon, *config.delta);
  const double rate = static_cast<double>(config.batch) / size.value;
  return rate * std::sqrt(steps_of(config, size)) / *config.sigma;
}

/// Returns the mean over all steps of the learning-rate schedule, i.e. of the factor by which the
/// learning rate lr is multiplied. Computed from at most 1,000 steps, evenly spaced.
double mean_factor(const TrainConfig& config, const TrainingSize& size) {
  TrainConfig unit = config;
  unit.lr = 1.0;
  const auto steps = static_cast<std::uint64_t>(steps_of(config, size));
  const std::uint64_t per_epoch = size.steps_per_epoch(config.batch);
  const std::uint64_t samples = std::min<std::uint64_t>(steps, 1000);
  double sum = 0.0;
  for (std::uint64_t k = 0; k < samples; ++k) {
    const double done = (static_cast<double>(k) + 0.5) / static_cast<double>(samples);
    sum += learning_rate(unit, steps, per_epoch,
                         static_cast<std::uint64_t>(done * static_cast<double>(steps)));
  }
  return sum / static_cast<double>(samples);
}

/// Returns whether a linear model is trained on a table by a method of stochastic gradients.
bool is_linear_on_table(const TrainConfig& config, const Dataset& format, const Network& network) {
  const MethodEntry& method = method_entry(config.method);
  return format.is_coded() && network.layers.size() == 1 && network.parameters.size() == 2 &&
         method.gives_privacy && method.stochastic;
}

double momentum_of(const TrainConfig& config) {
  return config.optimizer == OptimizerKind::sgd ? 0.0 : config.momentum;
}

}  // namespace

std::span<const std::string_view> table_setting_keys() { return kTableKeys; }

bool has_table_defaults(const TrainConfig& config, const Dataset& format, const Network& network) {
  return is_linear_on_table(config, format, network) &&
         method_entry(config.method).own_tuning.empty();
}

bool table_chooses_batch(const TrainConfig& config, const Dataset& format, const Network& network) {
  return is_open(config, "batch") && has_table_defaults(config, format, network);
}

void choose_for_table(TrainConfig& config, const TrainingSize& size, const Dataset& format,
                      const Network& network) {
  if (config.of<LeftOpen>().keys.empty()) return;
  if (!has_table_defaults(config, format, network)) {
    if (is_open(config, "batch") && method_entry(config.method).stochastic)
      config.batch = std::min(config.batch, std::max<std::int64_t>(1, whole_rows(size)));
    return;
  }
  const TaskNumbers& task = format.has_targets() ? kTargetNumbers : kClassNumbers;
  const std::int64_t rows = whole_rows(size);
  // Rounded down, so that the sampling rate is at most 1 / kTableBatches even if there are few rows
  // (but at least kTableBatches).
  if (is_open(config, "batch")) config.batch = whole(std::floor(size.value / kTableBatches), rows);
  if (is_open(config, "epochs"))
    config.epochs = whole(kTableSteps * static_cast<double>(config.batch) / size.value, kMaxEpochs);
  if (is_open(config, "ema")) config.ema = kTableAverage;
  // Signal-to-noise ratio of a whole training: the noise moves the weights by about the path length
  // divided by `signal`. Path length: sum over the steps of learning rate times clipping norm.
  const double signal = size.value * mu_of_training(config, size) /
                        static_cast<double>(size.unit_rows) /
                        std::sqrt(static_cast<double>(network.parameter_count));
  if (is_open(config, "clip"))
    config.clip_norm = two_digits(std::clamp(task.clip * signal, task.min_clip, task.max_clip));
  if (!is_open(config, "lr")) return;
  const double all_steps = steps_of(config, size) * mean_factor(config, size);
  if (has_second_moment(config.optimizer)) {
    config.lr = two_digits(task.adam_travel / all_steps);
    return;
  }
  double rate = std::fmin(task.max_travel, task.travel * signal) * (1.0 - momentum_of(config)) /
                config.clip_norm;
  rate /= all_steps;
  // The curvature of the squared loss is |x|^2 + 1, and each number and each code of a row adds at
  // most 1 to |x|^2. With a larger learning rate, steps would overshoot.
  if (format.has_targets())
    rate = std::fmin(rate, 20.0 * (1.0 - momentum_of(config)) /
                               (1.0 + format.layout->numbers() + format.layout->codes));
  config.lr = two_digits(rate);
}

namespace {

std::string rows_text(const TrainingSize& size) {
  return fmt::format("{}{:.0f} rows", size.is_public() ? "" : "about ", size.value);
}

/// Returns a message for the user of a method whose learning rate cannot be chosen automatically
/// (MethodEntry::own_tuning is not empty). It states the settings with which the default method
/// would start: batch size, number of steps or epochs, ema, and the product of lr and clip. (Only
/// the product, because some of these methods have no clipping norm.) Returns "" for other methods,
/// if the user has set --lr, or if the model is not a linear model of a table.
std::string own_tuning_line(const TrainConfig& config, const TrainingSize& size,
                            const Dataset& format, const Network& network) {
  const MethodEntry& method = method_entry(config.method);
  if (method.own_tuning.empty() || !is_open(config, "lr") ||
      !is_linear_on_table(config, format, network))
    return "";
  TrainConfig usual = config;
  usual.method = TrainConfig{}.method;
  choose_for_table(usual, size, format, network);
  return fmt::format(
      "for a table of {} and this budget {} would start from batch {}, {}, ema {:.10g} and lr x "
      "clip {:.2g}; {} needs settings of its own: {}{}",
      rows_text(size), usual.method, usual.batch,
      usual.steps ? fmt::format("steps {}", *usual.steps) : fmt::format("epochs {}", *usual.epochs),
      usual.ema, usual.lr * usual.clip_norm, config.method, method.own_tuning,
      method.own_tuning.find("--lr") == std::string_view::npos ? "; and --lr" : "");
}

}  // namespace

std::string table_defaults_line(const TrainConfig& config, const TrainingSize& size,
                                const Dataset& format, const Network& network) {
  if (config.of<LeftOpen>().keys.empty()) return "";
  if (!has_table_defaults(config, format, network)) {
    if (is_open(config, "batch") && method_entry(config.method).stochastic &&
        config.batch < TrainConfig{}.batch)
      return fmt::format("chosen for {}: batch {}, which is all of them; what you type wins",
                         rows_text(size), config.batch);
    return own_tuning_line(config, size, format, network);
  }
  std::string chosen;
  const auto add = [&](std::string_view key, double value) {
    if (is_open(config, key))
      chosen += fmt::format("{}{} {:.10g}", chosen.empty() ? "" : ", ", key, value);
  };
  add("batch", static_cast<double>(config.batch));
  if (config.epochs) add("epochs", static_cast<double>(*config.epochs));
  add("lr", config.lr);
  add("ema", config.ema);
  add("clip", config.clip_norm);
  if (chosen.empty()) return "";
  return fmt::format(
      "chosen for a table of {}, {} parameters and this budget: {}; what you type wins",
      rows_text(size), network.parameter_count, chosen);
}

}  // namespace cudp
