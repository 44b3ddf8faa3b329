#include "runtime/methods/dpsgd.hpp"

#include <vector>

namespace cudp {

void DpSgd::run(Engine& engine, std::uint64_t first, std::uint64_t last) const {
  std::vector<StepScalars> scalars;  // eta_t, sigma C, 1 / b
  for (std::uint64_t t = first; t < last; ++t) scalars.push_back(schedule().at(t));

  engine.run(first, scalars, [](Engine& step) {
    // B_t: each example independently with probability q
    step.sample_batch();
    // sum over B_t of g_i / max(1, |g_i| / C), g_i the gradient of example i's loss
    step.sum_clipped_gradients();
    // g~ = (sum + N(0, sigma^2 C^2 I)) / b;  theta_{t+1} = theta_t - eta_t g~, or another
    // optimizer's step with g~
    step.add_noise_and_update();
  });
}

}  // namespace cudp
