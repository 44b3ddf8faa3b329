#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

/// Privacy of DP-SGD and related methods: each step released the sum of the clipped gradients of a
/// random batch, with Gaussian noise.
struct NoisySums {
  std::string sampling;  ///< sampling scheme of the batches
  double q = 0.0;        ///< sampling rate, sampling_threshold / 2^32
  std::uint64_t sampling_threshold = 0;
  /// Number of steps of an epoch under random allocation, in which each example is used in exactly
  /// one step of the epoch, chosen at random; 0 for other sampling.
  std::uint64_t epoch_steps = 0;
  double sigma = 0.0;      ///< noise multiplier; that of the first step if it changes
  double clip_norm = 0.0;  ///< C [gradient units]; that of the first step if it changes
  std::string clipping;    ///< method by which gradients are bounded
  std::string clipped;     ///< name of the clipped quantity; empty: the gradient of an example
  /// Meaning of clip_norm, if the method bounds gradients in another way than by clipping.
  std::string clip_norm_is;
  /// Largest change of the sum by one example: C (clip_norm) plus the rounding error [gradient
  /// units].
  double sensitivity = 0.0;
  double noise_std = 0.0;  ///< standard deviation of the noise [gradient units]
  /// Sums and noise are integer multiples of this [gradient units]; the value of the first step if
  /// clip_norm changes.
  double grid = 0.0;

  /// Smallest and largest factor on the noise multiplier sigma, if the noise changes from step to
  /// step.
  struct Scales {
    double min;
    double max;
  };
  std::optional<Scales> noise_over_time;

  double expected_batch = 0.0;
  std::uint64_t steps = 0;  ///< number of steps that were charged to the budget
  std::uint64_t steps_planned = 0;
  std::vector<Release> releases;  ///< all releases that were charged to the budget
  std::string accountant;         ///< name of the accountant that bounds these releases
  double epsilon_lower = 0.0;     ///< the accountant's lower bound; 0 if it has none
  /// Spacing of the grid to which the accountant rounded privacy losses [nats]; 0: it did not round
  /// them.
  double loss_interval = 0.0;
  double order = 0.0;               ///< Renyi order; 0 for accountants of another kind
  bool order_fixed_before = false;  ///< the Renyi order was chosen before the first release
  double delta_for_rounding = 0.0;  ///< part of delta that covers rounding (PrivacyPlan::failure)
  /// Standard deviation of the noise on the sum of gradient norms that method DPIS releases at the
  /// start of an epoch; empty for other methods.
  std::optional<double> norm_total_noise;

  /// A clipping norm that follows a quantile of the gradients' norms: its settings, its last value,
  /// and the noise of the two sums that each step releases, of gradients and of a count.
  struct Quantile {
    double target;  ///< the quantile that C follows
    double min_clip_norm;
    double max_clip_norm;
    float last_clip_norm;              ///< clipping norm after the last step
    double gradient_noise_multiplier;  ///< noise multiplier of the gradient sums
    double count_sensitivity;          ///< largest change of the count by one example
    double count_noise_std;            ///< standard deviation of the noise on the count
  };
  std::optional<Quantile> quantile;
};

/// Privacy of method DP-AGD: it releases gradient sums with Gaussian noise and noisy choices of a
/// step size. A filter adds up the cost rho of each release (zero-concentrated DP), and admits a
/// release only if the remaining budget suffices.
struct FilteredReleases {
  /// Sampling rate of a step's examples, times 2^32; 0 if every step uses all.
  std::uint64_t sampling_threshold = 0;
  double clip_norm = 0.0;
  double loss_clip = 0.0;
  double sensitivity = 0.0;
  double loss_sensitivity = 0.0;
  std::string selection_noise;  ///< kind of noise in the choice of a step size
  /// Whether the proof holds for real numbers only, so that it does not cover the rounding of
  /// released values.
  bool real_numbers_only = false;
  std::uint64_t steps = 0;
  std::vector<Release> releases;
  double rho = 0.0;        ///< the filter's whole budget, as rho in zCDP
  double rho_spent = 0.0;  ///< the part of rho that releases have used
  /// Whether rho was computed from epsilon and delta by the classical conversion (Bun, Steinke
  /// 2016, Proposition 1.3) instead of the tight one.
  bool classical_budget = false;
};

/// Objective of a linear model: a strongly convex empirical risk, whose minimum methods AMP and
/// output perturbation release with noise.
struct MinimisedRisk {
  double regulariser = 0.0;       ///< Lambda, weight of |w|^2 / 2 in the objective
  double max_norm = 0.0;          ///< maximum norm of an example
  std::optional<double> huber;    ///< half-width of the hinge loss's smooth part; empty for others
  double solver_tolerance = 0.0;  ///< tau, largest norm of the gradient at the minimum found
};

/// Privacy of method AMP (objective perturbation): noise in the objective, and noise on its
/// approximate minimum. The proof is for real numbers only.
struct PerturbedObjective {
  MinimisedRisk risk;
  double noise_std = 0.0;
  double sensitivity = 0.0;
  double kappa = 0.0;               ///< bound on the part of epsilon from the determinant
  double output_noise_std = 0.0;    ///< standard deviation of the noise on the minimum
  double output_sensitivity = 0.0;  ///< 2 tau / Lambda
  std::vector<Release> releases;
};

/// Privacy of output perturbation: Gaussian noise on the minimum of an objective.
struct PerturbedOutput {
  MinimisedRisk risk;
  double sigma = 0.0;
  double sensitivity = 0.0;
  double noise_std = 0.0;
  double grid = 0.0;
  std::vector<Release> releases;
};

/// Privacy of method PrivGene, a genetic algorithm: in each generation an exponential mechanism
/// chooses parents among the candidate models, by their clipped losses.
struct ChosenParents {
  double loss_clip = 0.0;
  double loss_sensitivity = 0.0;
  double selection_epsilon = 0.0;  ///< epsilon of the choice of one parent
  std::uint64_t generations = 0;
  std::uint64_t candidates = 0;  ///< number of candidate models of a generation
  std::uint64_t parents = 0;     ///< number of parents chosen in each generation but the last
  std::vector<Release> releases;
};

/// Privacy of a run that released only its noisy number of examples: the trainer could plan no
/// training for that number, and ended with an error.
struct CountedExamples {
  std::vector<Release> releases;
  std::string accountant;
};

/// Mechanism of a training without privacy.
struct NoPrivacy {
  double expected_batch = 0.0;
  std::uint64_t steps = 0;
};

/// The (epsilon, delta) guarantee of a training, and the numbers that are needed to check it.
struct Promise {
  double epsilon = 0.0;  ///< epsilon of the whole run; infinite without privacy
  double delta = 0.0;
  std::string method;
  std::string mechanism;  ///< description of the mechanism in words
  std::variant<NoisySums, FilteredReleases, PerturbedObjective, PerturbedOutput, ChosenParents,
               CountedExamples, NoPrivacy>
      how;
};

/// Epsilon, at the run's delta, for `units` privacy units changed together (group privacy). A unit
/// is one example unless the certificate states another unit.
struct GroupBound {
  std::uint64_t units = 0;
  std::optional<double> epsilon;  ///< empty if there is no bound
  std::string reason;             ///< reason why there is no bound
};
/// Group privacy: epsilon for several group sizes, or the reason why no table of them is stated.
struct Groups {
  std::vector<GroupBound> bounds;
  std::string not_stated;  ///< reason why there is no table; empty if there is one
};

}  // namespace cudp::privacy
