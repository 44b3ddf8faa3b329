#pragma once
// Goes through a run's transcript and makes its sums again (recomputed_sums.hpp). Its members are
// defined by what they hold: recomputed_sums.cpp has the transcript, recomputed_clipping.cpp
// gradients and their clipped sums, recomputed_coordinates.cpp AdaCliP's coordinates and steps,
// recomputed_importance.cpp DPIS, recomputed_linear.cpp the methods for linear models,
// recomputed_statistics.cpp what is counted or measured of rows before the first step, and of
// held-out ones after the last.
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

/// What a gradient in float32 may differ by from one in double, as a share of its terms.
inline constexpr double kGradientError = 2e-5;
/// Beyond, float32 may overflow where double does not.
inline constexpr double kLargest = 1e12;

inline double norm_of(const Values& v) {
  double square = 0.0;
  for (const double x : v) square += x * x;
  return std::sqrt(square);
}

/// An example's gradient, and what float32 may make of it.
struct Measured {
  Values gradient;
  Values norms;   ///< of each group
  Values errors;  ///< of each group's gradient, in norm
  double norm = 0.0;
  double error = 0.0;
  bool sane = true;
};

/// Of adaclip and dpis, after so many steps.
struct Beside {
  CoordinateEstimates coordinates;
  Values norms, errors;
};

/// Gives the oracle's engine its numbers from outside.
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

/// One run, gone through once.
class Recomputer {
 public:
  /// run, transcript: as recompute_sums has them.
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
  /// Another label than the example's own, or a target far from it.
  double other_answer(std::uint32_t i) const;
  Measured measure(std::uint32_t i, const Values& theta);
  /// What an example counts: its class's weight over the largest.
  double weight(std::uint32_t i) const;
  /// The gradient of the weighted loss.
  Measured measure_weighted(std::uint32_t i, const Values& theta);

  // Sums of clipped gradients.
  /// What an example adds, factor by factor; what it may be off by goes to `*allowed`.
  void add_clipped(const Measured& m, const Values& factors, double sensitivity,
                   const std::string& where, Values& sum, double* allowed);
  void hold_length(double length, double sensitivity, const std::string& where);
  /// |sum - r.sums| <= allowed and the grid's roundings; `again` gives the sum that the oracle
  /// finds a little beside the parameters: where they meet a kink, float32 may be on its other
  /// side.
  void hold_distance(const Values& sum, const transcript::Release& r, double allowed, std::size_t n,
                     const std::string& where, const std::function<Values()>& again);
  Values beside(const Values& theta) const;
  /// C of a step: of dpsgd-quantile it follows from what was released.
  double clip_of(const transcript::Release& r) const;
  void hold_sum(const transcript::Release& r);
  /// How many gradients of the batch were not clipped, less half the batch.
  void hold_count(const transcript::Release& r);

  // adaclip
  void hold_transformed(const transcript::Release& r);
  /// m and s follow from what was released, and so do the parameters.
  void follow_coordinates(const transcript::Update& u);
  /// The parameters are the optimizer's after gradient g, which float32 may have `errors` of.
  void hold_step(const transcript::Update& u, const Values& g, const Values& errors);

  // dpis
  /// C and b / K of an epoch, from its released sum of norms.
  std::optional<ImportanceRule> rule_of(std::uint64_t step) const;
  bool measure_all();
  /// Sums of all norms, cut: at the parameters now, or as each was last seen.
  void hold_norms(const transcript::Release& r, bool now);
  /// What an example is a candidate by, and the relative error of that.
  static double estimate(const ImportanceRule& r, double norm);
  double share_of_error(const ImportanceRule& r, std::size_t i) const;
  void draw_candidates(const transcript::Batch& b);
  void hold_directions(const transcript::Release& r);

  // dp-agd
  /// Into the batch of this iteration, which the checker holds against its words.
  bool is_drawn(std::uint32_t i) const;
  void hold_descent(const transcript::Release& r);
  /// The first score of a line search is that of no step: the clipped losses at the parameters.
  void hold_losses(const transcript::Release& r);

  // outpert, objpert
  /// Derivative of a margin's loss.
  double margin_derivative(double m) const;
  /// At what noise is added to, the objective's gradient is as small as the noise allows for:
  /// sum of phi'(v w) v, v = y (x, 1) / max(R, |(x, 1)|), with the regulariser's, and b of objpert.
  void hold_minimum(const transcript::Release& r);
  /// Adds b to the gradient, holds what left against the second noise, and returns what float32
  /// may make of b.
  double hold_objective_noise(const transcript::Release& r, const Values& w, Values& gradient);

  // Statistics of rows: each of one part alone, whatever is in the other.
  /// How many training examples there are.
  void hold_size(const transcript::Release& r);
  /// Second moments of the training examples as they were before anything was released.
  void hold_second_moments(const transcript::Release& r);
  /// Means and mean squares of the channels of such examples.
  void hold_channel_moments(const transcript::Release& r);
  /// How many rows of each class, or how many rows with a target, were held out.
  void hold_held_out(const transcript::Release& r);
  /// |sums - expected| <= allowed for each of them.
  void hold_numbers(const transcript::Release& r, const Values& expected, double allowed);

  verify::StatedNumbers certificate_;
  nlohmann::json json_;
  std::vector<transcript::Record> records_;
  Experiment experiment_;
  Dataset as_read_;  ///< training examples before features that rest on a release
  bool can_ = false;
  std::unique_ptr<Oracle> engine_;
  std::uint64_t steps_per_epoch_ = 1;
  std::uint64_t every_ = 1;  ///< how many steps to one that is made again

  std::optional<transcript::Begin> begin_;
  transcript::State state_;
  std::uint64_t iteration_ = 0;
  std::optional<transcript::Batch> batch_;
  std::optional<transcript::Release> released_;
  Beside now_;
  std::map<std::uint64_t, Beside> beside_;                     ///< by steps done
  std::map<std::uint64_t, std::pair<double, double>> counts_;  ///< least and most, by step
  std::map<std::uint64_t, std::pair<double, double>> totals_;  ///< C and K' by epoch
  Recomputed found_;
};

}  // namespace cudp::recomputing
