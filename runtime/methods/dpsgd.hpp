#pragma once
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// DP-SGD: Abadi et al. 2016, Algorithm 1, with the Poisson sampling that its analysis requires
/// (Mironov, Talwar, Zhang 2019), and division by the expected batch size b instead of the drawn
/// one.
class DpSgd : public EngineMethod {
 public:
  explicit DpSgd(const MethodContext& context);
  DpSgd(const MethodContext& context, const PrivacyPlan& plan) : EngineMethod(context, plan) {}

  StepRecipe recipe() const override;
};

MethodEntry dpsgd_method();
/// Registers DP-SGD for networks with tempered sigmoids or tanh (Papernot et al. 2021) as a method.
MethodEntry dpsgd_ts_method();
/// Register two baselines from DP-AGD's paper as methods: DP-SGD with the moments accountant (Abadi
/// et al. 2016), and with advanced composition (Dwork, Rothblum, Vadhan 2010).
MethodEntry sgd_ma_method();
MethodEntry sgd_adv_method();

}  // namespace cudp
