#pragma once
#include <any>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "kernels/common/precision.hpp"
#include "kernels/random/random.hpp"
#include "kernels/step/recipe.hpp"
#include "privacy/accountant.hpp"
#include "runtime/config/evaluate_with.hpp"
#include "runtime/config/malformed.hpp"
#include "runtime/config/normalise.hpp"
#include "runtime/config/rows_in.hpp"
#include "runtime/config/sum_by.hpp"

namespace cudp {

/// Device that the user requests. Two devices of the same kind are equal: the index of a CUDA
/// device is not compared, because it does not affect the result.
struct Device {
  enum class Kind { automatic, cpu, cuda };
  Kind kind = Kind::automatic;
  int number = 0;  ///< index of a CUDA device; not used for other kinds

  static const Device automatic, cpu, cuda;
  friend constexpr bool operator==(const Device& a, const Device& b) { return a.kind == b.kind; }
};
inline constexpr Device Device::automatic{Kind::automatic};
inline constexpr Device Device::cpu{Kind::cpu};
inline constexpr Device Device::cuda{Kind::cuda};

enum class ScheduleKind { constant, step, cosine, polynomial, square_root, adaptive };
/// How batches are drawn. poisson: each example is in each step's batch with the same probability,
/// independently. allocation: each example is in the batch of one random step of each epoch.
enum class Sampling { poisson, allocation };
/// Features that are computed from the examples before training. scatter: scattering transform.
/// pca: principal components.
enum class Features { none, scatter, pca };

/// Container of structs of options, at most one of each type: of<Options>() returns the struct of
/// type Options. Training methods and other parts of the program define these structs in their own
/// headers. A struct that was never set has its initial values.
class MethodOptions {
 public:
  template <class Options>
  Options& of() {
    std::any& slot = structs_[typeid(Options)];
    if (!slot.has_value()) slot = Options{};
    return *std::any_cast<Options>(&slot);
  }
  template <class Options>
  const Options& of() const {
    static const Options initial{};
    const auto found = structs_.find(typeid(Options));
    return found == structs_.end() ? initial : *std::any_cast<Options>(&found->second);
  }

 private:
  std::map<std::type_index, std::any> structs_;
};

/// All settings of `cudp train`. The initial value of a member is its default. The meaning and
/// range of each setting are in the table in settings/options.cpp, or in the file of the method
/// that it belongs to.
struct TrainConfig {
  // Settings of the data.
  std::string dataset;
  std::string data_dir = "data";
  std::string schema;
  std::string labels;
  std::string test_data;
  std::string test_labels;
  bool test_data_is_public = false;
  bool size_is_public = false;
  /// Fraction of the units of privacy that are held out for testing; not set: none.
  std::optional<double> holdout;
  /// Privacy budget (epsilon) for releasing noisy test metrics of held-out rows; not set: none are
  /// released.
  std::optional<double> holdout_epsilon;
  std::optional<double> holdout_delta;
  bool accept_private_bounds = false;
  Malformed malformed = Malformed::refuse;
  std::optional<std::int64_t> classes;
  Normalise normalise = Normalise::none;
  Features features = Features::none;
  std::int64_t feature_groups = 27;
  bool feature_standardise = false;
  double feature_second_order = 0.3;
  std::string feature_cache = "auto";
  std::int64_t feature_dimensions = 60;
  bool feature_whiten = false;
  std::optional<double> feature_share = 0.1;
  std::optional<double> feature_sigma;

  // Settings of the model.
  std::string model;  ///< name of the model; empty: training/prepare.cpp chooses one for the data
  std::string activation;
  std::string loss;  ///< regression loss: squared (also if empty) or huber
  /// Threshold of the Huber loss [unit of the target]; not set: a tenth of the range between the
  /// target's bounds.
  std::optional<double> huber_delta;
  /// Weight of each class: factor on the loss of its examples, in any scale (class_weights.hpp).
  /// Empty: all weights are 1.
  std::vector<double> class_weights;

  // Settings of privacy. Those that the guarantee depends on have no default: they stay empty until
  // they are set.
  std::optional<double> epsilon;
  std::optional<double> delta;
  std::optional<double> sigma;
  privacy::AccountantKind accountant = privacy::AccountantKind::best;
  double clip_norm = 1.0;  ///< clipping norm C; its option is --clip
  Clipping clipping = Clipping::flat;
  Sampling sampling = Sampling::poisson;
  Generator rng = Generator::chacha20;
  std::optional<std::int64_t> seed;
  bool unsafe_diagnostics = false;
  bool allow_weak_privacy = false;
  bool fresh_noise_allowed = false;

  // Settings of the training.
  std::string method = "dpsgd";  ///< name of the training method, one of methods/registry.cpp
  MethodOptions method_options;
  std::string preset;
  /// Whether `cudp tune` chose these settings, and the privacy guarantee covers that choice. Set by
  /// the program only.
  bool tuned = false;
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

  // Settings of the machine.
  Device device = Device::automatic;
  /// Precision of matrix products: the requested one, until training/prepare.cpp replaces it by the
  /// one that is used.
  Precision precision = Precision::tf32;
  EvaluateWith evaluate_with = EvaluateWith::ours;
  RowsIn rows_in = RowsIn::automatic;
  std::int64_t threads = 0;
  std::int64_t micro_batch = 0;
  std::int64_t ranks = 1;
  bool share_device = false;
  SumBy sum_by = SumBy::automatic;
  /// How long a rank (process) waits for another one before the training fails [seconds].
  double rank_timeout = 600.0;

  // Settings of the output.
  std::string config;
  std::string out;
  std::string resume;
  std::string resume_or_start;
  bool fresh_noise = false;
  std::int64_t eval_every = 1;
  std::int64_t checkpoint_every = 0;
  bool json = false;
  bool quiet = false;
  bool timings = false;

  /// Returns the struct of options of type Options, e.g. those of a training method.
  template <class Options>
  Options& of() {
    return method_options.of<Options>();
  }
  template <class Options>
  const Options& of() const {
    return method_options.of<Options>();
  }
};

}  // namespace cudp
