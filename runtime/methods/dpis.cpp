#include "runtime/methods/dpis.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "kernels/contribution/importance.hpp"
#include "privacy/filter.hpp"
#include "privacy/math/boundary.hpp"
#include "privacy/rdp/mechanism.hpp"
#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/make_plan.hpp"

namespace cudp {
namespace {

/// Relative margin by which a sampling rate is increased to cover its rounding: probabilities are
/// rounded to multiples of 2^-32, and the factors of the rate to double. (acceptance_threshold() in
/// importance.hpp also rounds the probability to be drawn and accepted down.)
constexpr double kRounding = 1e-9;
/// Relative rounding error of sigma_K C, the standard deviation of the noise on the sum of gradient
/// norms. (The norms are rounded towards zero and summed exactly, so they need no margin.)
constexpr double kSumRounding = 0x1p-51;
/// Gradient norms are rounded to 2^-kNormBits of the norm they are clipped to before they are
/// summed, or to 2^-36 of the noise on the sum if that is coarser.
constexpr int kNormBits = 30;
constexpr int kNoiseBits = 36;
/// Maximum sampling rate, below 1 so that no example is certain to be drawn.
constexpr double kLargestRate = 1.0 - 1e-4;

/// Makes the privacy plan (sampling rate, steps, noise) for the worst case, in which the noisy sum
/// of gradient norms is N~ C in every epoch (N~: number of examples, C: clipping norm).
PrivacyPlan dpis_plan(const MethodContext& context) {
  const TrainConfig& config = context.config;
  const auto& options = config.of<DpisOptions>();
  PrivacyPlan plan =
      plan_without_noise(context, {.clip_norm = config.clip_norm, .largest_rate = kLargestRate});
  // Later releases depend on earlier ones, so Renyi divergences may be added only at an order that
  // is fixed before the first release.
  plan.accountant = privacy::AccountantKind::rdp;
  const std::uint64_t epoch = context.steps_per_epoch();
  plan.epoch_releases = (plan.steps + epoch - 1) / epoch * (options.adaptive_clip ? 2 : 1);
  plan.epoch_noise = options.total_noise * context.size.value;
  // The order is the best one for the worst case. It is chosen here, before any release.
  plan.noise_multiplier = noise_multiplier_for(config, plan);
  plan.order = filter_order(plan);
  return with_noise(config, std::move(plan));
}

}  // namespace

Dpis::Dpis(const MethodContext& context) : Dpis(context, dpis_plan(context)) {}

Dpis::Dpis(const MethodContext& context, const PrivacyPlan& plan) : EngineMethod(context, plan) {}

std::optional<privacy::Budget> Dpis::filter() const {
  return privacy::renyi_budget(plan().order, *config().epsilon, plan().delta - plan().failure, 0.0,
                               plan().group);
}

void Dpis::start(const TrainingInputs& inputs, const PrivacyBudget& budget) {
  epoch_.left = budget.left();
  EngineMethod::start(inputs, budget);
}

MethodState Dpis::state() const {
  MethodState state = EngineMethod::state();
  state.numbers["epoch"] = {epoch_.epoch, epoch_.clip_norm, epoch_.total, epoch_.sigma,
                            epoch_.left};
  return state;
}

void Dpis::restore(const TrainingInputs& inputs, const MethodState& state) {
  EngineMethod::restore(inputs, state);
  const auto& e = state.numbers.at("epoch");
  epoch_ = {.epoch = e.at(0).get<std::uint64_t>(),
            .clip_norm = e.at(1).get<double>(),
            .total = e.at(2).get<double>(),
            .sigma = e.at(3).get<double>(),
            .left = e.at(4).get<double>()};
  // A state that was made with another random key has no norms, because the rows may have changed
  // since. The norms are then measured again.
  if (state.array("norms").size() != inputs.train.size()) engine().measure_norms();
}

/// Restarts the current epoch at this step with a new random key. The releases at the start of the
/// epoch (sums of gradient norms) are made and charged again, because the training rows may have
/// changed. The noise of the epoch's remaining steps follows from the budget that is left.
void Dpis::fresh_key(PrivacyBudget& budget, std::uint64_t step) {
  epoch_.epoch = DpisEpoch::kNone;  // read by ledger_index
  EngineMethod::fresh_key(budget, step);
  epoch_.left = budget.left();
}

std::uint64_t Dpis::epochs() const {
  return (plan().steps + steps_per_epoch() - 1) / steps_per_epoch();
}

std::uint64_t Dpis::ledger_index(std::uint64_t step) const {
  const std::uint64_t epoch = epoch_of(step);
  return epoch * width() + (epoch_.epoch == epoch ? epoch_releases() : 0) +
         step % steps_per_epoch();
}

std::uint64_t Dpis::prepared_until(std::uint64_t step) const {
  return std::min((epoch_of(step) + 1) * steps_per_epoch(), plan().steps);
}

ImportanceRule Dpis::rule() const {
  return {.clip = epoch_.clip_norm,
          .multiple = options().multiple,
          .min_norm = options().floor * epoch_.clip_norm,
          .rate = plan().expected_batch / epoch_.total};
}

double Dpis::rate() const {
  return std::fmin(1.0,
                   plan().expected_batch * epoch_.clip_norm / epoch_.total * (1.0 + kRounding));
}

double Dpis::noise_multiplier() const {
  return epoch_.sigma * epoch_.clip_norm * size() / epoch_.total;
}

std::vector<privacy::Release> Dpis::releases_of(std::uint64_t first, std::uint64_t last) const {
  return {{privacy::sampled_gaussian_mechanism(rate(), noise_multiplier()), last - first}};
}

double Dpis::cost(double q, double sigma) const {
  return privacy::rdp(privacy::sampled_gaussian_mechanism(q, sigma), plan().order,
                      {.group = plan().group});
}

bool Dpis::prepare(PrivacyBudget& budget, std::uint64_t step) {
  const std::uint64_t epoch = epoch_of(step);
  if (epoch_.epoch == epoch) return true;
  const std::uint64_t number = ledger_index(step);
  const double sigma_k = plan().epoch_noise;
  const privacy::Release totals{privacy::Gaussian{sigma_k}, epoch_releases()};
  if (!budget.authorise(number, {&totals, 1})) return false;
  const double left = epoch_.left - static_cast<double>(totals.count) * cost(1.0, sigma_k);

  // C_1 = C; C_{e+1} = lambda K*_e / N~
  const double clip = next_clip(epoch, number + 1);
  // n_i = min(|g_i|, C_e), K' = sum_i n_i + N(0, sigma_K^2 C_e^2)
  engine().measure_norms();
  const double measured = noisy_total("sum of the norms", Stream::norm_total, epoch, number, clip);
  // K~ = min(max(K', b C_e + xi), N~ C_e), with a small xi > 0, here 1e-6 b C_e
  const double min_total = plan().expected_batch * clip * (1.0 + 1e-6);
  const double total = std::fmin(std::fmax(measured, min_total), size() * clip);

  epoch_ = {.epoch = epoch, .clip_norm = clip, .total = total, .sigma = 0.0, .left = left};
  return choose_sigma(step, left);
}

double Dpis::next_clip(std::uint64_t epoch, std::uint64_t number) {
  if (!options().adaptive_clip || epoch == 0) return plan().clip_norm;
  // K*_e = sum_i min(|g_i|, C*) + N(0, sigma_K^2 C*^2), C* = 4 C_1, with the stored |g_i|, each
  // computed when example i was last measured or drawn
  const double max_clip = 4.0 * plan().clip_norm;
  const double total = noisy_total("sum of the norms for the next clipping norm",
                                   Stream::largest_norms, epoch, number, max_clip);
  return std::clamp(options().lambda * total / size(), 1e-3 * plan().clip_norm, max_clip);
}

/// Computes the sum of gradient norms, each clipped to max_norm, in integer multiples of a grid,
/// and releases it with noise. The grid depends on public numbers only, so that the noise is at
/// most 2^37 and max_norm at most 2^31 grid steps. Adding an example changes the rounded sum by at
/// most max_norm.
double Dpis::noisy_total(const char* name, Stream purpose, std::uint64_t epoch,
                         std::uint64_t number, double max_norm) {
  const double noise = plan().epoch_noise * max_norm * (1.0 + kSumRounding);
  const double grid =
      std::ldexp(1.0, std::max(std::ilogb(max_norm) - kNormBits, std::ilogb(noise) - kNoiseBits));
  auto sum = static_cast<std::int64_t>(engine().norm_total(max_norm, grid));
  ranks().sum(name, {&sum, 1});
  return gate().release({.name = name,
                         .purpose = purpose,
                         .step = epoch,
                         .grid = grid,
                         .noise_std = noise,
                         .sensitivity = max_norm,
                         .charge = {privacy::Gaussian{plan().epoch_noise}, number}},
                        sum);
}

/// Sets sigma_G, the noise multiplier of the epoch's steps, to the smallest value for which the
/// remaining steps of the training cost at most `left`, the remaining budget. Returns false if
/// there is none. Later epochs are assumed to be like this one or, in the first phase of the
/// training, like the worst case, in which the noisy sum of gradient norms is N~ C (N~: number of
/// examples, C: clipping norm). first: next step.
bool Dpis::choose_sigma(std::uint64_t first, double left) {
  const std::uint64_t now = prepared_until(first) - first;
  const std::uint64_t later = plan().steps - first - now;
  const std::uint64_t later_epochs = (later + steps_per_epoch() - 1) / steps_per_epoch();
  const bool worst_case =
      static_cast<double>(epoch_.epoch) < options().first_phase * static_cast<double>(epochs());
  const double others =
      static_cast<double>(later_epochs * epoch_releases()) * cost(1.0, plan().epoch_noise);
  const double worst_rate = std::fmin(1.0, plan().expected_batch / size() * (1.0 + kRounding));
  const auto spent = [&](double log_sigma, bool with_later) {
    epoch_.sigma = std::exp(log_sigma);
    const double step = cost(rate(), noise_multiplier());
    const double other = worst_case ? cost(worst_rate, epoch_.sigma) : step;
    return static_cast<double>(now) * step +
           (with_later ? static_cast<double>(later) * other + others : 0.0);
  };
  // Slightly less than the remaining budget, because the filter rounds the cost of every release
  // up.
  const double max_spent = left * (1.0 - 1e-9);
  const auto excess = [&](double x) { return std::log(spent(x, true) / max_spent); };
  double good = std::log(plan().noise_multiplier);
  while (!(excess(good) <= 0.0)) {
    good += 0.5;
    if (good > 30.0) return false;
  }
  double bad = good - 0.5;
  while (excess(bad) <= 0.0 && bad > -6.0) {
    good = bad;
    bad -= 0.5;
  }
  double x = excess(bad) <= 0.0 ? bad : privacy::safe_boundary(excess, bad, good, 1e-9);
  x = std::fmax(x, std::log(kMinNoiseMultiplier));
  epoch_.left = left - spent(x, false);  // also sets epoch_.sigma to exp(x)
  return true;
}

StepRecipe Dpis::recipe() const {
  return {// candidates: example i with probability b ghat_i / K~
          .draw = Candidates{rule()},
          // for each candidate i: its gradient g_i and n_i = min(|g_i|, C, ghat_i). It is accepted
          // with probability n_i / ghat_i, so example i is drawn and accepted with probability b
          // n_i / K~. The sum adds g_i / |g_i| of the accepted examples. Then ghat_i <- k
          // max(min(|g_i|, C), g_L), at most K~ / b
          .contribution = AcceptedDirection{},
          // g~ = (K~ / N~ sum + N(0, sigma_G^2 C^2 I)) / b;  theta_{t+1} = theta_t - eta_t g~
          .optimizer = optimizer_settings(config())};
}

StepScalars Dpis::scalars(std::uint64_t t) const {
  ensure(epoch_of(t) == epoch_.epoch, "a step of an epoch that was not prepared");
  StepScalars s = schedule().at(t);  // eta_t, s_e, K~ / (N~ b)
  // An example is accepted according to its norm at this step, with probability at most q_e,
  // whatever its norm was at the start of the epoch. So each term of the sum has norm 1, plus
  // rounding.
  const double of_direction = sensitivity(bound_of(AcceptedDirection{}, epoch_.clip_norm),
                                          context().network, context().arithmetic);
  s.noise_std = float_above(noise_multiplier() * of_direction);
  s.inverse_batch = static_cast<float>(epoch_.total / (size() * plan().expected_batch));
  return s;
}

std::string Dpis::mechanism() const {
  return "importance-sampled Gaussian (DPIS), within Poisson-subsampled Gaussians admitted by a "
         "Renyi filter";
}

MethodEntry dpis_method() {
  using namespace option_rows;
  using Options = DpisOptions;
  MethodEntry entry;
  entry.name = "dpis";
  entry.options = {
      number("dpis-multiple", "K", &Options::multiple, kMultiple,
             "dpis: candidates for each example of the batch"),
      number("dpis-floor", "F", &Options::floor, kUnitPositive,
             "dpis: minimum norm by which examples are drawn, as a share of the clipping norm"),
      number("dpis-total-noise", "S", &Options::total_noise, kUnitPositive,
             "dpis: noise on the sum of norms, as a share of the number of examples"),
      number("dpis-first-phase", "A", &Options::first_phase, kUnit,
             "dpis: share of the epochs that reserve budget for the worst case"),
      toggle("dpis-adaptive-clip", &Options::adaptive_clip,
             "dpis: from the second epoch on, clip to the noisy mean norm"),
      number("dpis-lambda", "L", &Options::lambda, kPositive,
             "dpis: factor on the mean norm, with dpis-adaptive-clip")};
  entry.uses = engine_method_options();
  std::erase(entry.uses, "sigma");
  std::erase(entry.uses, "sampling");
  entry.uses.emplace_back("clip");
  entry.complete = [](TrainConfig& c) {
    if (c.clipping != Clipping::flat) throw InputError("--clipping: expected flat for method dpis");
    if (constexpr double kMinClip = 1024.0 * kMinDirection; c.clip_norm < kMinClip)
      throw InputError(
          fmt::format("--clip: expected at least {:.3g} for method dpis, which leaves "
                      "out gradients of norm below {:.3g}, found {:.6g}",
                      kMinClip, kMinDirection, c.clip_norm));
    if (!c.epsilon || c.sigma)
      throw InputError("--epsilon: expected a budget, and no --sigma, for method dpis");
    if (c.accountant == privacy::AccountantKind::advanced)
      throw InputError("--accountant: expected pld or rdp for method dpis, found advanced");
  };
  entry.make = make_method<Dpis>;
  return entry;
}

}  // namespace cudp
