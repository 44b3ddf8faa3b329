#include "runtime/methods/dp_agd.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/device/observed.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {

DpAgd::DpAgd(const DpAgdSettings& settings, LinearEngine& engine, double examples, Gate& gate)
    : settings_(settings),
      engine_(engine),
      examples_(settings.threshold > 0
                    ? examples * static_cast<double>(settings.threshold) * 0x1p-32
                    : examples),
      gate_(gate) {}

DpAgdState DpAgd::begin(std::vector<float> w) const {
  DpAgdState s;
  s.w = std::move(w);
  s.rho_gradient = settings_.rho_gradient;
  s.largest = settings_.first_largest;
  return s;
}

bool DpAgd::iterate(DpAgdState& s) {
  if (settings_.threshold > 0) {
    engine_.draw_batch(gate_.stream(Stream::sampling, s.iterations), settings_.threshold);
    if (observer(gate_.release_observer()) != nullptr)
      show_batch(gate_.release_observer(), s.iterations, Poisson{settings_.threshold},
                 engine_.batch());
  }
  // g = sum of grad_i / max(1, |grad_i| / C_grad)
  const std::vector<double> g = engine_.clipped_gradient_sum(s.w, settings_.gradient_clip);
  // g~ = g + N(0, C_grad^2 / (2 rho_ng) I)
  auto measured = measure(s, g, s.rho_gradient);
  if (!measured) return false;

  for (;;) {
    const std::vector<float> steps = step_sizes(s);  // Phi
    const std::vector<float> unit = direction(s, *measured);
    // i = NoisyMin of f(w - alpha g~ / |g~|) over alpha in Phi
    const std::vector<double> scores = objective(s, unit, steps);
    const double epsilon = noisy_min_epsilon(settings_.rho_selection, settings_.selection);
    const std::uint64_t number = s.releases;
    if (!admitted(s, noisy_min_mechanism(epsilon, settings_.selection), settings_.rho_selection))
      return false;
    const std::size_t i = noisy_min(
        scores, linear_loss_sensitivity(settings_.loss_clip, settings_.max_examples), epsilon,
        settings_.selection, gate_.stream(Stream::selection, number), gate_.release_observer());
    if (i > 0) {
      accept(s, static_cast<double>(steps[i]), unit);
      return true;
    }
    // No step size helps. Measures the gradient once more, at the additional cost gamma rho_ng, and
    // replaces it by the mean of both measurements, weighted with their costs. Then offers shorter
    // steps.
    const double more = settings_.gamma * s.rho_gradient;
    const auto second = measure(s, g, more);
    if (!second) return false;
    for (std::size_t j = 0; j < measured->size(); ++j)
      (*measured)[j] =
          (s.rho_gradient * (*measured)[j] + more * (*second)[j]) / (s.rho_gradient + more);
    s.rho_gradient += more;
    s.largest *= settings_.shrink;
  }
}

bool DpAgd::admitted(DpAgdState& s, const privacy::Mechanism& release, double rho) {
  if (!gate_.admit({release, s.releases})) return false;
  ++s.releases;
  s.rho += rho;
  return true;
}

std::optional<std::vector<double>> DpAgd::measure(DpAgdState& s, const std::vector<double>& sum,
                                                  double rho) {
  const double sigma = 1.0 / std::sqrt(2.0 * rho);
  const std::uint64_t number = s.releases;
  if (!admitted(s, privacy::Gaussian{sigma}, rho)) return std::nullopt;
  const GaussianRelease release = gradient_release(sigma, number);
  return gate_.release(release, units_of(sum, release.grid));
}

/// Returns the description of the release of a noisy gradient sum: name, noise, privacy charge.
/// sigma: its noise multiplier. number: index of the release.
///
/// Released values are multiples of a grid, usually that of the engine's sum. If the noise is at
/// least 2^39 steps of that grid, a coarser grid is used, of 2^-38 times the noise. The sum is then
/// rounded to the coarser grid; each coordinate changes by at most half a step, which the
/// sensitivity includes.
GaussianRelease DpAgd::gradient_release(double sigma, std::uint64_t number) const {
  const double max_examples = settings_.max_examples;
  const int d = engine_.dimension();
  constexpr double kProduct = 1.0 + 0x1p-50;  // larger than the rounding error of the products
  GaussianRelease r{
      .name = "sum of clipped gradients",
      .purpose = Stream::noise,
      .step = number,
      .grid = linear_grid(settings_.gradient_clip, max_examples),
      .noise_std = 0.0,
      .sensitivity = linear_gradient_sensitivity(settings_.gradient_clip, d, max_examples),
      .charge = {privacy::Gaussian{sigma}, number}};
  r.noise_std = sigma * r.sensitivity * kProduct;
  if (r.noise_std < 0x1p39 * r.grid) {
    r.grid = noise_grid(r.noise_std, r.grid);
    return r;
  }
  r.grid = std::ldexp(1.0, std::ilogb(r.noise_std) - 38);
  r.sensitivity += std::sqrt(static_cast<double>(d)) * r.grid;
  r.noise_std = sigma * r.sensitivity * kProduct;
  return r;
}

std::vector<float> DpAgd::direction(const DpAgdState& s,
                                    const std::vector<double>& measured) const {
  std::vector<double> g = measured;
  for (std::size_t j = 0; j < g.size(); ++j)
    g[j] += examples_ * settings_.l2 * static_cast<double>(s.w[j]);
  double square = 0.0;
  for (const double v : g) square += v * v;
  const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
  std::vector<float> unit;
  unit.reserve(g.size());
  for (const double v : g) unit.push_back(static_cast<float>(v * scale));
  return unit;
}

std::vector<float> DpAgd::step_sizes(const DpAgdState& s) const {
  std::vector<float> steps;
  steps.reserve(static_cast<std::size_t>(settings_.step_sizes));
  for (int k = 0; k < settings_.step_sizes; ++k)
    steps.push_back(static_cast<float>(s.largest * k / (settings_.step_sizes - 1)));
  return steps;
}

std::vector<double> DpAgd::objective(const DpAgdState& s, const std::vector<float>& unit,
                                     const std::vector<float>& steps) {
  std::vector<double> scores = engine_.clipped_losses(unit, steps, settings_.loss_clip);
  // Adds the regulariser's change to each score: N lambda/2 |w - a d|^2 - N lambda/2 |w|^2, rounded
  // to the grid of the losses. N: number of examples; a: step size; d: direction (`unit`). The
  // change is public and the addition is exact, so the sensitivity of a score is that of the sum of
  // losses.
  const double grid = linear_grid(settings_.loss_clip, settings_.max_examples);
  double along = 0.0;
  double square = 0.0;
  for (std::size_t j = 0; j < unit.size(); ++j) {
    along += static_cast<double>(s.w[j]) * unit[j];
    square += static_cast<double>(unit[j]) * unit[j];
  }
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const auto a = static_cast<double>(steps[k]);
    const double more = examples_ * settings_.l2 * (0.5 * a * a * square - a * along);
    scores[k] += grid * std::clamp(std::nearbyint(more / grid), -0x1p52, 0x1p52);
  }
  return scores;
}

void DpAgd::accept(DpAgdState& s, double step, const std::vector<float>& unit) const {
  for (std::size_t j = 0; j < unit.size(); ++j)
    s.w[j] = static_cast<float>(static_cast<double>(s.w[j]) - step * static_cast<double>(unit[j]));
  if (SecretObserver* const o = observer(gate_.release_observer())) {
    transcript::Update update;
    update.step = s.iterations;
    update.optimizer = "dp-agd";
    update.weight_decay = examples_ * settings_.l2;
    update.learning_rate = step;
    update.parameters = s.w;
    o->on_record(update);
  }
  const auto window = static_cast<std::size_t>(settings_.window);
  if (s.chosen.size() == window) s.chosen.clear();
  s.chosen.push_back(step);
  ++s.iterations;
  // alpha_max = (1 + eta) max of the last tau steps
  if (s.chosen.size() == window)
    s.largest = (1.0 + settings_.window_growth) * *std::ranges::max_element(s.chosen);
}

}  // namespace cudp
