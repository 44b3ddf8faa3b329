#pragma once
#include <cstdint>

#include "runtime/methods/dpsgd.hpp"

namespace cudp {

/// Options of the method DpSgdDecay.
struct DpSgdDecayOptions {
  double noise_decay = 0.005;  ///< k, decay rate of the noise per epoch
};

/// DP-SGD with noise that falls from epoch to epoch, sigma_t = sigma_0 exp(-k t) in epoch t: Yu et
/// al. 2019 (arXiv:1904.02200), exponential decay. Everything else is plain DP-SGD. sigma_0 is the
/// smallest value with which all steps together stay within epsilon. Choosing k by looking at the
/// private data is not covered by epsilon.
class DpSgdDecay final : public DpSgd {
 public:
  explicit DpSgdDecay(const MethodContext& context);
  DpSgdDecay(const MethodContext& context, const PrivacyPlan& plan) : DpSgd(context, plan) {}
};

/// Returns sigma_t / sigma_0 in an epoch, counted from 0, for decay rate k.
double decaying_noise(double k, std::uint64_t epoch);

MethodEntry dpsgd_decay_method();

}  // namespace cudp
