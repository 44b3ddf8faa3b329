#pragma once
#include <cstdint>
#include <vector>

#include "kernels/random/random.hpp"
#include "runtime/device/linear_engine.hpp"

namespace cudp {

/// The SGD baselines of DP-AGD's tables: Poisson batches of expected size sqrt(n), one linear
/// model.
struct LinearSgd {
  double clip = 1.0;
  double l2 = 0.0;
  double learning_rate = 1.0;
  std::uint64_t epochs = 10;
};

/// The accountant by which sigma follows from (epsilon, delta).
enum class SgdAccounting {
  moments,  ///< SGD-MA: Renyi divergence of the sampled Gaussian (Abadi et al. 2016)
  advanced  ///< SGD-Adv: amplification by sampling, then advanced composition (Bassily et al. 2014)
};

/// The noise multiplier of `steps` steps at sampling rate q. +infinity where the accounting gives
/// none. advanced: every step is (e, d)-DP by the classical Gaussian mechanism, on a sample
/// (ln(1 + q (exp(e) - 1)), q d); d and the composition's slack share delta in halves.
double sgd_sigma(SgdAccounting accounting, double epsilon, double delta, double q,
                 std::uint64_t steps);

/// Weights after training, of `examples` that are public.
std::vector<float> run_linear_sgd(const LinearSgd& settings, SgdAccounting accounting,
                                  double epsilon, double delta, LinearEngine& engine,
                                  const RandomKey& key);

}  // namespace cudp
