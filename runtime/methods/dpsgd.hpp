#pragma once
#include <cstdint>

#include "runtime/methods/method.hpp"

namespace cudp {

/// DP-SGD: Abadi et al. 2016, Algorithm 1, with the Poisson sampling that its analysis needs
/// (Mironov, Talwar, Zhang 2019) and division by the expected batch b instead of the drawn one.
/// Also the algorithm of dpsgd-ts, which is DP-SGD on a network of tempered sigmoids or tanh
/// (Papernot et al. 2021), and of dpsgd-decay, whose noise falls over time (dpsgd_decay.hpp).
class DpSgd final : public PlannedMethod {
 public:
  using PlannedMethod::PlannedMethod;
  void run(Engine& engine, std::uint64_t first, std::uint64_t last) const override;
};

}  // namespace cudp
