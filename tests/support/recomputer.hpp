#pragma once
// Recomputer: reads a run's transcript and recomputes its sums (recomputed_sums.hpp). Its functions
// are defined in files by topic: recomputed_sums.cpp has the transcript, recomputed_clipping.cpp
// gradients and their clipped sums, recomputed_coordinates.cpp AdaCliP's coordinates and steps,
// recomputed_importance.cpp DPIS, recomputed_linear.cpp the methods for linear models,
// recomputed_statistics.cpp the counts and moments of rows before the first step, and of held-out
// rows after the last.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "privacy/transcript/records.hpp"
#include "privacy/verify/stated_numbers.hpp"
#include "runtime/methods/dpis.hpp"
#include "runtime/training/prepare.hpp"
#include "tests/support/coordinate_estimates.hpp"
#include "tests/support/recomputed_sums.hpp"
#include "tests/support/reference/engine.hpp"

namespace cudp::recomputing {

namespace fs = std::filesystem;
using reference::Values;

/// Largest difference of a gradient in float32 from one in double, as a share of its terms.
inline constexpr double kGradientError = 2e-5;
/// Numbers beyond this may overflow in float32 but not in double.
inline constexpr double kLargest = 1e12;

inline double norm_of(const Values& v) {
  double square = 0.0;
  for (const double x : v) square += x * x;
  return std::sqrt(square);
}

/// Gradient of an example, and bounds on the error of float32.
struct Measured {
  Values gradient;
  Values norms;   ///< norm of each group
  Values errors;  ///< bound on the error of each group's gradient [norm]
  double norm = 0.0;
  double error = 0.0;
  bool sane = true;
};

/// State of adaclip and dpis in addition to the parameters, after some number of steps.
struct Beside {
  CoordinateEstimates coordinates;
  Values norms, errors;
};

/// Reference engine whose state can be set from outside.
class Oracle : public reference::ReferenceEngine {
 public:
  using ReferenceEngine::ReferenceEngine;

  void set_beside(const Beside& b) {
    state_.mean = b.coordinates.mean;
    state_.deviation = b.coordinates.deviation;
    transform();
  }
  const Values& scale() const { return scale_; }
  const Values& centre() const { return centre_; }
};

/// Reads one run once.
class Recomputer {
 public:
  /// run, transcript: see recompute_sums.
  Recomputer(const fs::path& run, const std::string& transcript);

  Recomputed run();

 private:
  const Network& net() const { return experiment_.network; }
  const TrainConfig& config() const { return experiment_.config; }
  const Dataset& train() const { return experiment_.data.train; }
  std::size_t parameters() const { return net().parameter_count; }
  bool is(const char* method) const { return certificate_.method == method; }

  void fault(const std::string& what);
  void leave_out() { ++found_.left_out; }
  std::string at(const transcript::Release& r) const { return fmt::format("step {}", r.step); }

  // The transcript.
  bool show_what_was_released(const fs::path& model);
  void process(const transcript::Begin& b);
  void process(const transcript::State& s) {
    state_ = {s.parameters, s.moment1, s.moment2, s.average};
  }
  void process(const transcript::Batch& b);
  void process(const transcript::Release& r);
  void process(const transcript::Update& u);
  RandomStream stream(Stream which, std::uint64_t step) const;
  Values theta() const { return {state_.parameters.begin(), state_.parameters.end()}; }
  bool is_sane() const;

  // Gradients.
  Values gradient(std::uint32_t i, double answer, const Values& theta) const;
  double answer(std::uint32_t i) const { return reference::answer_of(train(), i); }
  /// Returns another label than the example's own, or a target far from its own.
  double other_answer(std::uint32_t i) const;
  Measured measure(std::uint32_t i, const Values& theta);
  /// Returns the weight of an example: its class's weight divided by the largest.
  double weight(std::uint32_t i) const;
  /// Computes the gradient of the weighted loss.
  Measured measure_weighted(std::uint32_t i, const Values& theta);

  // Sums of clipped gradients.
  /// Adds an example's contribution, with one factor per group, to `sum`, and a bound on its error
  /// to `*allowed`.
  void add_clipped(const Measured& m, const Values& factors, double sensitivity,
                   const std::string& where, Values& sum, double* allowed);
  void check_length(double length, double sensitivity, const std::string& where);
  /// Checks that |sum - r.sums| is at most `allowed` plus the rounding to the grid. `again` returns
  /// the sum at slightly different parameters: near a kink of the loss, float32 may be on the other
  /// side of it.
  void check_distance(const Values& sum, const transcript::Release& r, double allowed,
                      std::size_t n, const std::string& where,
                      const std::function<Values()>& again);
  Values beside(const Values& theta) const;
  /// Returns C of a step. With dpsgd-quantile it follows from released counts.
  double clip_of(const transcript::Release& r) const;
  void check_sum(const transcript::Release& r);
  /// Checks the number of gradients of the batch that were not clipped, minus half the batch.
  void check_count(const transcript::Release& r);

  // adaclip
  void check_transformed(const transcript::Release& r);
  /// Updates m and s from the released sum, and checks the parameters.
  void follow_coordinates(const transcript::Update& u);
  /// Checks that the parameters are the optimizer's result for gradient g, whose errors in float32
  /// are at most `errors`.
  void check_step(const transcript::Update& u, const Values& g, const Values& errors);

  // dpis
  /// Returns C and b / K of an epoch, computed from its released sum of norms.
  std::optional<ImportanceRule> rule_of(std::uint64_t step) const;
  bool measure_all();
  /// Checks the sum of all clipped norms: norms at the current parameters (now), or as last stored.
  void check_norms(const transcript::Release& r, bool now);
  /// Returns the estimate by which an example becomes a candidate.
  static double estimate(const ImportanceRule& r, double norm);
  double share_of_error(const ImportanceRule& r, std::size_t i) const;
  void draw_candidates(const transcript::Batch& b);
  void check_directions(const transcript::Release& r);

  // dp-agd
  /// Returns whether the sampler draws an example into the batch of this iteration. (The checker
  /// compares the batch with the sampler's words.)
  bool is_drawn(std::uint32_t i) const;
  void check_descent(const transcript::Release& r);
  /// Checks the first score of a line search, which is that of step size 0: the clipped losses at
  /// the parameters.
  void check_losses(const transcript::Release& r);

  // outpert, objpert
  /// Returns the derivative of the loss with respect to the margin.
  double margin_derivative(double m) const;
  /// Checks that at the minimum before noise, the objective's gradient is as small as the noise
  /// allows for: the sum of phi'(v w) v, v = y (x, 1) / max(R, |(x, 1)|), plus the regulariser's
  /// gradient and, for objpert, b.
  void check_minimum(const transcript::Release& r);
  /// Adds b to the gradient, checks the rest against the second noise, and returns a bound on the
  /// float32 error of b.
  double check_objective_noise(const transcript::Release& r, const Values& w, Values& gradient);

  // Statistics of rows. Each depends on one part alone, training or held out.
  /// Checks the number of training examples.
  void check_size(const transcript::Release& r);
  /// Checks the second moments of the training examples as they were before the first release.
  void check_second_moments(const transcript::Release& r);
  /// Checks the means and mean squares of the channels of such examples.
  void check_channel_moments(const transcript::Release& r);
  /// Checks the number of held-out rows of each class, or with a target.
  void check_held_out(const transcript::Release& r);
  /// Checks that |sums - expected| <= allowed for each number.
  void check_numbers(const transcript::Release& r, const Values& expected, double allowed);

  verify::StatedNumbers certificate_;
  nlohmann::json json_;
  std::vector<transcript::Record> records_;
  Experiment experiment_;
  Dataset as_read_;  ///< training examples before features that need a release are computed
  bool can_ = false;
  std::unique_ptr<Oracle> engine_;
  std::uint64_t steps_per_epoch_ = 1;
  std::uint64_t every_ = 1;  ///< one step in this many is recomputed

  std::optional<transcript::Begin> begin_;
  transcript::State state_;
  std::uint64_t iteration_ = 0;
  std::optional<transcript::Batch> batch_;
  std::optional<transcript::Release> released_;
  Beside now_;
  std::map<std::uint64_t, Beside> beside_;  ///< key: number of steps done
  /// Smallest and largest possible count, by step.
  std::map<std::uint64_t, std::pair<double, double>> counts_;
  std::map<std::uint64_t, std::pair<double, double>> totals_;  ///< C and K' of each epoch
  Recomputed found_;
};

}  // namespace cudp::recomputing
