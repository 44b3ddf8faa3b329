#include "runtime/methods/adaclip.hpp"

#include <vector>

namespace cudp {

void AdaClip::run(Engine& engine, std::uint64_t first, std::uint64_t last) const {
  std::vector<StepScalars> scalars;  // eta_t, sigma, 1 / b
  for (std::uint64_t t = first; t < last; ++t) scalars.push_back(schedule().at(t));

  engine.run(first, scalars, [](Engine& step) {
    step.sample_batch();
    // scale_j = sqrt(s_j) sqrt(sum_l s_l);  w_i = (g_i - m) / scale
    // sum over B_t of w_i / max(1, |w_i|)
    step.sum_coordinate_clipped_gradients();
    // g~ = scale (sum + N(0, sigma^2 I)) / b + m;  theta_{t+1} = theta_t - eta_t g~
    // m <- beta1 m + (1 - beta1) g~;  s^2 <- beta2 s^2 + (1 - beta2) v(g~)
    step.add_noise_restore_and_update();
  });
}

}  // namespace cudp
