#include "kernels/step/recipe.hpp"

#include <cmath>

#include "kernels/common/launch.hpp"
#include "kernels/step/allocation.hpp"
#include "kernels/step/release.hpp"

namespace cudp {

bool keeps_the_same(const StepRecipe& a, const StepRecipe& b) {
  return a.draw.index() == b.draw.index() && a.contribution.index() == b.contribution.index() &&
         has_first_moment(a.optimizer.kind) == has_first_moment(b.optimizer.kind) &&
         has_second_moment(a.optimizer.kind) == has_second_moment(b.optimizer.kind) &&
         a.optimizer.keep_average == b.optimizer.keep_average;
}

void validate(const StepRecipe& r) {
  const auto* const candidates = std::get_if<Candidates>(&r.draw);
  expect((candidates != nullptr) == std::holds_alternative<AcceptedDirection>(r.contribution),
         "step: expected accepted directions with candidates, and only with them");
  if (candidates != nullptr) validate(candidates->rule);
  if (const auto* const p = std::get_if<Poisson>(&r.draw))
    expect(p->threshold <= std::uint64_t{1} << 32, "step: expected a threshold of 0 to 2^32");
  if (const auto* const a = std::get_if<Allocation>(&r.draw))
    expect(a->steps >= 1 && a->steps <= kMaxEpochSteps, "step: expected epochs of 1 to 2^24 steps");
  if (const auto* const clipped = std::get_if<ClippedGradient>(&r.contribution))
    expect(clipped->stability > 0 && std::isfinite(clipped->stability),
           "clip: expected a stability that is finite and > 0");
  if (const auto* const transformed = std::get_if<TransformedGradient>(&r.contribution))
    validate(transformed->coordinates);
  if (r.step_size)
    expect(r.step_size->period > 0 && r.step_size->min_growth > 0 && r.step_size->weight >= 0,
           "step size: expected period > 0, min_growth > 0 and weight >= 0");
}

void validate(const StepRecipe& recipe, const StepScalars& s) {
  expect(s.clip_norm > 0 && s.clip_norm < 1e30f, "clip: expected a norm that is finite and > 0");
  check_noise(bound_of(recipe.contribution, static_cast<double>(s.clip_norm)).grid, s.noise_std);
}

}  // namespace cudp
