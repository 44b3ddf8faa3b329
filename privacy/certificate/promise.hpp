#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

/// Noisy sums of clipped gradients of random batches: the mechanism of DP-SGD and its descendants.
struct NoisySums {
  std::string sampling;  ///< how batches are drawn
  double q = 0.0;        ///< sampling rate, sampling_threshold / 2^32
  std::uint64_t sampling_threshold = 0;
  double sigma = 0.0;        ///< noise multiplier; of the first step, where it changes
  double clip_norm = 0.0;    ///< C; of the first step, where it changes
  std::string clipping;      ///< how gradients are bounded
  std::string clipped;       ///< what is clipped, where that is not the gradient as it is
  std::string clip_norm_is;  ///< what C is, where nothing is clipped
  double sensitivity = 0.0;  ///< C and what rounding can add to it
  double noise_std = 0.0;    ///< in gradient units
  double grid = 0.0;         ///< of the noise; of the first step, where C changes

  /// The smallest and the largest factor on sigma, where noise differs from step to step.
  struct Scales {
    double min;
    double max;
  };
  std::optional<Scales> noise_over_time;

  double expected_batch = 0.0;
  std::uint64_t steps = 0;  ///< that were charged
  std::uint64_t steps_planned = 0;
  std::vector<Release> releases;           ///< all that were charged
  std::string accountant;                  ///< name of the bound on these releases
  double epsilon_lower = 0.0;              ///< lower bound of that accountant; 0: it has none
  double loss_interval = 0.0;              ///< interval of its grid; 0 without one
  double order = 0.0;                      ///< of a Renyi bound; 0 of another one
  bool order_fixed_before = false;         ///< the order was chosen before the first release
  double delta_for_rounding = 0.0;         ///< part of delta: PrivacyPlan::failure
  std::optional<double> norm_total_noise;  ///< of the sum of norms that an epoch begins with

  /// A clipping norm that follows a quantile of the gradients' norms.
  struct Quantile {
    double target;
    double min_clip_norm;
    double max_clip_norm;
    float last_clip_norm;
    double gradient_noise_multiplier;
    double count_sensitivity;
    double count_noise_std;
  };
  std::optional<Quantile> quantile;
};

/// Gaussian sums and noisy minima, each let through by a zCDP filter (DP-AGD).
struct FilteredReleases {
  std::uint64_t sampling_threshold = 0;  ///< 0: all examples
  double clip_norm = 0.0;
  double loss_clip = 0.0;
  double sensitivity = 0.0;
  double loss_sensitivity = 0.0;
  std::string selection_noise;
  bool real_numbers_only = false;  ///< the proof does not hold to the last bit of what is released
  std::uint64_t steps = 0;
  std::vector<Release> releases;
  double rho = 0.0;  ///< the filter's budget
  double rho_spent = 0.0;
  bool classical_budget = false;  ///< rho by Bun, Steinke 2016
};

/// The minimum of a strongly convex objective, which linear perturbation methods release.
struct MinimisedRisk {
  double regulariser = 0.0;
  double max_norm = 0.0;        ///< of an example
  std::optional<double> huber;  ///< of the hinge loss
  double solver_tolerance = 0.0;
};

/// Noise in the objective and on its approximate minimum (AMP). Proved for real numbers only.
struct PerturbedObjective {
  MinimisedRisk risk;
  double noise_std = 0.0;
  double sensitivity = 0.0;
  double kappa = 0.0;
  double output_noise_std = 0.0;
  double output_sensitivity = 0.0;
  std::vector<Release> releases;
};

/// Gaussian noise on the minimum.
struct PerturbedOutput {
  MinimisedRisk risk;
  double sigma = 0.0;
  double sensitivity = 0.0;
  double noise_std = 0.0;
  double grid = 0.0;
  std::vector<Release> releases;
};

/// Parents that an exponential mechanism chooses (PrivGene).
struct ChosenParents {
  double loss_clip = 0.0;
  double loss_sensitivity = 0.0;
  double selection_epsilon = 0.0;
  std::uint64_t generations = 0;
  std::uint64_t candidates = 0;
  std::uint64_t parents = 0;
  std::vector<Release> releases;
};

/// The noisy number of examples alone: a run that was refused once it knew that.
struct CountedExamples {
  std::vector<Release> releases;
  std::string accountant;
};

/// A training without privacy.
struct NoPrivacy {
  double expected_batch = 0.0;
  std::uint64_t steps = 0;
};

/// The promise of a method for a run, and the numbers that are needed to check it.
struct Promise {
  double epsilon = 0.0;  ///< of the whole run; infinite without privacy
  double delta = 0.0;
  std::string method;
  std::string mechanism;  ///< in words
  std::variant<NoisySums, FilteredReleases, PerturbedObjective, PerturbedOutput, ChosenParents,
               CountedExamples, NoPrivacy>
      how;
};

/// Epsilon at the run's delta for so many units of privacy together: examples, where each is a
/// unit.
struct GroupBound {
  std::uint64_t units = 0;
  std::optional<double> epsilon;  ///< empty where there is no bound
  std::string reason;             ///< why there is none
};
struct Groups {
  std::vector<GroupBound> bounds;
  std::string not_stated;  ///< why nothing is said of groups; then there are no bounds
};

}  // namespace cudp::privacy
