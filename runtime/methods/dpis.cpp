#include "runtime/methods/dpis.hpp"

#include <algorithm>
#include <cmath>

#include "privacy/math/boundary.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

/// What the rounding of two probabilities to 32 bits and of their factors in double may add to a
/// rate (importance.hpp rounds down by more).
constexpr double kRounding = 1e-9;
/// Sums of norms in double, each norm at most C.
constexpr double kSumRounding = 1e-6;

}  // namespace

Dpis::Dpis(const TrainConfig& config, const Schedule& schedule, const PrivacyPlan& plan,
           double size, std::uint64_t steps_per_epoch, const Network& network,
           const Arithmetic& arithmetic, DpisEpoch& epoch)
    : config_(config),
      schedule_(schedule),
      plan_(plan),
      size_(size),
      steps_per_epoch_(steps_per_epoch),
      network_(network),
      arithmetic_(arithmetic),
      releases_(config.dpis_adaptive_clip ? 2 : 1),
      epoch_(epoch) {}

std::uint64_t Dpis::epochs() const {
  return (plan_.steps + steps_per_epoch_ - 1) / steps_per_epoch_;
}

/// In the ledger an epoch is: its K release (two releases where the clipping norm adapts), then
/// its steps.
std::uint64_t Dpis::place(std::uint64_t step) const {
  const std::uint64_t epoch = epoch_of(step);
  return epoch * width() + (epoch_.epoch == epoch ? releases_ : 0) + step % steps_per_epoch_;
}

std::uint64_t Dpis::prepared_until(std::uint64_t step) const {
  return std::min((epoch_of(step) + 1) * steps_per_epoch_, plan_.steps);
}

ImportanceRule Dpis::rule() const {
  return {.clip = epoch_.clip,
          .multiple = config_.dpis_multiple,
          .least = config_.dpis_floor * epoch_.clip,
          .rate = plan_.expected_batch / epoch_.total};
}

double Dpis::rate() const {
  return std::fmin(1.0, plan_.expected_batch * epoch_.clip / epoch_.total * (1.0 + kRounding));
}

double Dpis::noise_multiplier() const { return epoch_.sigma * epoch_.clip * size_ / epoch_.total; }

double Dpis::slack() const {
  const double part = 0.5 * plan_.failure / static_cast<double>(epochs());
  const double most = rate() * static_cast<double>(plan_.largest_sum);
  return sensitivity_rounding_error(network_, largest_batch(most, steps_per_epoch_, part),
                                    arithmetic_);
}

std::vector<privacy::Phase> Dpis::phases(std::uint64_t first, std::uint64_t last) const {
  return {{rate(), noise_multiplier(), last - first}};
}

double Dpis::cost(double q, double sigma) const {
  return privacy::rdp(privacy::step_of({.q = q, .sigma = sigma, .steps = 1}).mechanism,
                      plan_.order);
}

bool Dpis::prepare(Engine& engine, std::uint64_t step, const Charging& charging) {
  const std::uint64_t epoch = epoch_of(step);
  if (epoch_.epoch == epoch) return true;
  ensure(step % steps_per_epoch_ == 0, "an epoch of DPIS begins in its middle");
  const double sigma_k = plan_.epoch_noise;
  if (!charging.authorise(epoch * width(), epoch * width() + releases_, {1.0, sigma_k, 1}))
    return false;
  const double left = epoch_.left - static_cast<double>(releases_) * cost(1.0, sigma_k);

  // C_1 = C; C_{e+1} = lambda K*_e / N~
  const double clip = next_clip(engine, epoch);
  // n_i = min(|g_i|, C_e), K' = sum_i n_i + N(0, sigma_K^2 C_e^2)
  engine.measure_norms();
  double total = 0.0;
  for (const float norm : engine.norms()) total += std::fmin(norm, clip);
  total +=
      sigma_k * clip * (1.0 + kSumRounding) * engine.released_normal(Stream::norm_total, epoch);
  // K~ = min(max(K', b C_e + xi), N~ C_e)
  const double least = plan_.expected_batch * clip * (1.0 + 1e-6);
  total = std::fmin(std::fmax(total, least), size_ * clip);

  epoch_ = {.epoch = epoch, .clip = clip, .total = total, .sigma = 0.0, .left = left};
  return choose_sigma(step, left);
}

double Dpis::next_clip(Engine& engine, std::uint64_t epoch) const {
  if (!config_.dpis_adaptive_clip || epoch == 0) return plan_.clip_norm;
  // K*_e = sum_i min(|g_i| as last seen, C*) + N(0, sigma_K^2 C*^2), C* = 4 C_1
  const double most = 4.0 * plan_.clip_norm;
  double total = 0.0;
  for (const float norm : engine.norms()) total += std::fmin(norm, most);
  total += plan_.epoch_noise * most * (1.0 + kSumRounding) *
           engine.released_normal(Stream::largest_norms, epoch);
  return std::clamp(config_.dpis_lambda * total / size_, 1e-3 * plan_.clip_norm, most);
}

/// sigma_G, the smallest that what is left pays for if all later epochs were: in the first part of
/// the training, the worst case K~ = N~ C; in the rest, as this one.
bool Dpis::choose_sigma(std::uint64_t first, double left) {
  const std::uint64_t now = prepared_until(first) - first;
  const std::uint64_t later = plan_.steps - first - now;
  const std::uint64_t later_epochs = (later + steps_per_epoch_ - 1) / steps_per_epoch_;
  const bool worst_case =
      static_cast<double>(epoch_.epoch) < config_.dpis_first_phase * static_cast<double>(epochs());
  const double others =
      static_cast<double>(later_epochs * releases_) * cost(1.0, plan_.epoch_noise);
  const double worst_rate = std::fmin(1.0, plan_.expected_batch / size_ * (1.0 + kRounding));
  const auto spent = [&](double log_sigma, bool with_later) {
    epoch_.sigma = std::exp(log_sigma);
    const double step = cost(rate(), noise_multiplier());
    const double other = worst_case ? cost(worst_rate, epoch_.sigma) : step;
    return static_cast<double>(now) * step +
           (with_later ? static_cast<double>(later) * other + others : 0.0);
  };
  // A little less than what is left: the filter rounds every release up.
  const double most = left * (1.0 - 1e-9);
  const auto excess = [&](double x) { return std::log(spent(x, true) / most); };
  double good = std::log(plan_.noise_multiplier);
  while (!(excess(good) <= 0.0)) {
    good += 0.5;
    if (good > 30.0) return false;
  }
  double bad = good - 0.5;
  while (excess(bad) <= 0.0 && bad > -6.0) {
    good = bad;
    bad -= 0.5;
  }
  const double x = excess(bad) <= 0.0 ? bad : privacy::safe_boundary(excess, bad, good, 1e-9);
  epoch_.left = left - spent(x, false);  // leaves sigma at exp(x)
  return true;
}

void Dpis::run(Engine& engine, std::uint64_t first, std::uint64_t last) const {
  ensure(epoch_of(first) == epoch_.epoch && last <= prepared_until(first),
         "steps of an epoch that was not prepared");
  engine.set_importance(rule());
  const float noise = float_above(noise_multiplier() * (1.0 + slack()));
  std::vector<StepScalars> scalars;  // eta_t, s, K~ / (N~ b)
  for (std::uint64_t t = first; t < last; ++t) {
    StepScalars s = schedule_.at(t);
    s.noise_std = noise;
    s.inverse_batch = static_cast<float>(epoch_.total / (size_ * plan_.expected_batch));
    scalars.push_back(s);
  }

  engine.run(first, scalars, [](Engine& step) {
    // candidates: i with probability b ghat_i / K~
    step.sample_candidates();
    // for each: its gradient, n_i = min(|g_i|, C, ghat_i), accepted with probability n_i / ghat_i;
    // ghat_i <- k max(n_i, g_L). Sum of g_i / |g_i| over the accepted, which are i with
    // probability b n_i / K~
    step.sum_accepted_directions();
    // g~ = (K~ / N~ sum + N(0, sigma_G^2 C^2 I)) / b;  theta_{t+1} = theta_t - eta_t g~
    step.add_noise_and_update();
  });
}

double divergence_left(const privacy::Ledger& ledger) {
  const privacy::Filter filter(ledger);
  return filter.limit() * filter.remaining();
}

}  // namespace cudp
