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
  double sigma = 0.0;        ///< noise multiplier; of the first step, if it changes
  double clip_norm = 0.0;    ///< C; of the first step, if it changes
  std::string clipping;      ///< how gradients are bounded
  std::string clipped;       ///< description of what is clipped, if not the raw gradient
  std::string clip_norm_is;  ///< meaning of C, if no gradient is shortened
  double sensitivity = 0.0;  ///< C plus the rounding error
  double noise_std = 0.0;    ///< unit: the gradient's
  double grid = 0.0;         ///< grid of the noise; of the first step, if C changes

  /// Minimum and maximum factor on sigma, if the noise varies.
  struct Scales {
    double min;
    double max;
  };
  std::optional<Scales> noise_over_time;

  double expected_batch = 0.0;
  std::uint64_t steps = 0;  ///< number of steps charged
  std::uint64_t steps_planned = 0;
  std::vector<Release> releases;           ///< everything that was charged
  std::string accountant;                  ///< name of the bound on these releases
  double epsilon_lower = 0.0;              ///< lower bound of that accountant; 0: it has none
  double loss_interval = 0.0;              ///< interval of its grid; 0 without one
  double order = 0.0;                      ///< of a Renyi bound; 0 of another one
  bool order_fixed_before = false;         ///< the order was chosen before the first release
  double delta_for_rounding = 0.0;         ///< part of delta: PrivacyPlan::failure
  std::optional<double> norm_total_noise;  ///< noise on the sum of norms at the start of an epoch

  /// A clipping norm that tracks a quantile of the gradients' norms.
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

/// Gaussian sums and noisy minima, each admitted by a zCDP filter (DP-AGD).
struct FilteredReleases {
  std::uint64_t sampling_threshold = 0;  ///< 0: all examples
  double clip_norm = 0.0;
  double loss_clip = 0.0;
  double sensitivity = 0.0;
  double loss_sensitivity = 0.0;
  std::string selection_noise;
  bool real_numbers_only = false;  ///< the proof does not cover the last bits of what is released
  std::uint64_t steps = 0;
  std::vector<Release> releases;
  double rho = 0.0;  ///< the filter's budget
  double rho_spent = 0.0;
  bool classical_budget = false;  ///< rho by the conversion of Bun, Steinke 2016
};

/// Minimum of a strongly convex objective, which linear perturbation methods release.
struct MinimisedRisk {
  double regulariser = 0.0;
  double max_norm = 0.0;        ///< R, bound on the norm of an example
  std::optional<double> huber;  ///< h of the smoothed hinge loss
  double solver_tolerance = 0.0;
};

/// Noise in the objective and on its approximate minimum (AMP). The proof is for real numbers only.
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

/// Parents chosen by an exponential mechanism (PrivGene).
struct ChosenParents {
  double loss_clip = 0.0;
  double loss_sensitivity = 0.0;
  double selection_epsilon = 0.0;
  std::uint64_t generations = 0;
  std::uint64_t candidates = 0;
  std::uint64_t parents = 0;
  std::vector<Release> releases;
};

/// The noisy number of examples only: for a run that was refused once that number was known.
struct CountedExamples {
  std::vector<Release> releases;
  std::string accountant;
};

/// A training without privacy.
struct NoPrivacy {
  double expected_batch = 0.0;
  std::uint64_t steps = 0;
};

/// Guarantee of a method for a run, and the numbers needed to check it.
struct Promise {
  double epsilon = 0.0;  ///< epsilon of the whole run; infinite without privacy
  double delta = 0.0;
  std::string method;
  std::string mechanism;  ///< description for people
  std::variant<NoisySums, FilteredReleases, PerturbedObjective, PerturbedOutput, ChosenParents,
               CountedExamples, NoPrivacy>
      how;
};

/// Epsilon at the run's delta for a number of units of privacy together: of examples, if each is a
/// unit.
struct GroupBound {
  std::uint64_t units = 0;
  std::optional<double> epsilon;  ///< empty if there is no bound
  std::string reason;             ///< reason why there is none
};
struct Groups {
  std::vector<GroupBound> bounds;
  std::string not_stated;  ///< reason why no bounds are stated
};

}  // namespace cudp::privacy
