#pragma once
#include <cstdint>
#include <vector>

#include "kernels/random/random.hpp"
#include "runtime/device/linear_engine.hpp"

namespace cudp {

/// Settings of the SGD baselines in DP-AGD's tables: a linear model, trained on Poisson batches of
/// expected size sqrt(n).
struct LinearSgd {
  double clip = 1.0;
  double l2 = 0.0;
  double learning_rate = 1.0;
  std::uint64_t epochs = 10;
};

/// Accounting that determines sigma from (epsilon, delta).
enum class SgdAccounting {
  moments,  ///< SGD-MA: Renyi divergence of the sampled Gaussian (Abadi et al. 2016)
  advanced  ///< SGD-Adv: amplification by sampling, then advanced composition (Bassily et al. 2014)
};

/// Returns the noise multiplier of `steps` steps at sampling rate q; +infinity if the accounting
/// allows none. advanced: every step is (e, d)-DP for its sample by the classical Gaussian
/// mechanism, so (ln(1 + q (exp(e) - 1)), q d)-DP for the data. The steps' q d together and the
/// composition's slack each have half of delta.
double sgd_sigma(SgdAccounting accounting, double epsilon, double delta, double q,
                 std::uint64_t steps);

/// Returns the weights after training on the engine's examples, whose number is public.
std::vector<float> run_linear_sgd(const LinearSgd& settings, SgdAccounting accounting,
                                  double epsilon, double delta, LinearEngine& engine,
                                  const RandomKey& key);

}  // namespace cudp
