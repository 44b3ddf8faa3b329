#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "privacy/certificate/certificate.hpp"
#include "privacy/count_split.hpp"
#include "privacy/mechanism/mechanism.hpp"

namespace cudp::verify {

/// The numbers of a certificate that the checks use, under the same names for every method. A
/// number that the certificate lacks is 0.
struct StatedNumbers {
  std::string status;  ///< finished, not finished, refused
  std::string method, sampling, accountant, generator, test_set;
  double epsilon = 0.0;  ///< bound for everything released; NaN if the certificate states none
  double delta = 0.0;
  /// Bound on epsilon for training rows and one training. Equal to `epsilon`, unless rows are held
  /// out or the training was selected among others.
  double training_epsilon = 0.0;
  double training_delta = 0.0;
  double failure = 0.0;        ///< part of training_delta that covers rounding
  std::string unit;            ///< column that is the unit of privacy; empty: each row is a unit
  std::uint64_t max_rows = 1;  ///< maximum number of rows of a unit

  std::optional<privacy::Certificate::Holdout> holdout;
  std::optional<privacy::Certificate::Tuning> tuning;
  bool bounds_groups = false;  ///< whether the certificate states epsilon for several group sizes
  double q = 0.0, sigma = 0.0, clip = 0.0, sensitivity = 0.0, noise_std = 0.0, grid = 0.0;
  std::uint64_t threshold = 0;
  std::uint64_t epoch_steps = 0;  ///< steps of an epoch of random allocation; 0 for other sampling
  double expected_batch = 0.0;
  std::uint64_t steps = 0, steps_planned = 0;
  /// Number of releases that were charged again, because the random key was lost and they were
  /// repeated with a new one.
  std::uint64_t repeated = 0;
  /// Number of times that the random key was lost; nullopt if not stated.
  std::optional<std::uint64_t> keys_lost;
  double order = 0.0;
  bool order_fixed = false;
  std::optional<std::uint64_t> examples;  ///< number of examples, if it is public
  double size = 0.0;  ///< number of examples, or the noisy number if it is private
  double size_noise = 0.0;
  double feature_noise = 0.0;
  double norm_total_noise = 0.0;
  double loss_sensitivity = 0.0;
  std::optional<privacy::NoisySums::Quantile> quantile;
  std::vector<privacy::Release> releases;
  std::vector<privacy::NoisyValue> noisy_values;
  /// The parts of training_epsilon and training_delta, if the noisy number of examples has its own
  /// part of the budget.
  std::optional<privacy::CountSplit> split;

  /// Returns the part of epsilon that covers the training's plan: all releases except the noisy
  /// number of examples. If the budget is not divided (split is empty), it covers that number, too.
  double plan_epsilon() const { return split ? split->training_epsilon : training_epsilon; }
  /// Returns the delta that belongs to plan_epsilon(): the releases that it covers are
  /// (plan_epsilon(), plan_delta())-differentially private.
  double plan_delta() const { return split ? split->training_delta : training_delta; }
  /// Returns the releases that plan_epsilon() covers: `releases`, without the noisy number of
  /// examples if the budget is divided.
  std::vector<privacy::Release> plan_releases() const;
  /// Returns the number of steps that one release of the mechanism covers: those of an epoch under
  /// random allocation, otherwise 1.
  std::uint64_t steps_of_release() const { return epoch_steps > 0 ? epoch_steps : 1; }
  /// Returns the number of steps in the releases that were charged again (`repeated`).
  std::uint64_t repeated_steps() const { return std::min(steps, repeated * steps_of_release()); }
  bool is_finished() const { return status == "finished"; }
  /// Returns whether the certificate states that a random key was lost. If so, the number of steps
  /// may depend on released values, and only the run's budget bounds its epsilon.
  bool lost_a_key() const { return repeated > 0 || keys_lost.value_or(0) > 0; }
};

/// Parses a certificate, the text of release/privacy.json. Throws std::invalid_argument, with the
/// name of the field, if the text is not a certificate.
StatedNumbers read_stated_numbers(std::string_view text);

}  // namespace cudp::verify
