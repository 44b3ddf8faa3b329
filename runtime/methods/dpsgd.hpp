#pragma once
#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Method DP-SGD: Abadi et al. 2016, Algorithm 1, with the Poisson sampling that its analysis
/// requires (Mironov, Talwar, Zhang 2019). The noisy sum is divided by the expected batch size b,
/// not by the drawn one.
class DpSgd : public EngineMethod {
 public:
  explicit DpSgd(const MethodContext& context);
  DpSgd(const MethodContext& context, const PrivacyPlan& plan) : EngineMethod(context, plan) {}

  StepRecipe recipe() const override;
};

MethodEntry dpsgd_method();
/// Returns the registry entry of method dpsgd-ts: DP-SGD for networks with tempered sigmoids or
/// tanh (Papernot et al. 2021).
MethodEntry dpsgd_ts_method();
/// Returns the registry entry of method sgd-ma, a baseline in DP-AGD's paper: DP-SGD with the
/// moments accountant (Abadi et al. 2016).
MethodEntry sgd_ma_method();
/// Returns the registry entry of method sgd-adv, a baseline in DP-AGD's paper: DP-SGD with advanced
/// composition (Dwork, Rothblum, Vadhan 2010).
MethodEntry sgd_adv_method();

}  // namespace cudp
