#include "privacy/verify/release_rules.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "privacy/count_split.hpp"
#include "privacy/filter.hpp"
#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/rdp/gaussian.hpp"
#include "privacy/rdp/zcdp.hpp"
#include "privacy/text/number.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/statements.hpp"

namespace cudp::verify {
namespace {

using privacy::number;
using privacy::Release;

/// Fraction of delta that is set aside for bounds that fail with a small probability: on the size
/// of a batch, or of a private data set.
constexpr double kFailureShare = 1e-9;
/// Smallest noise multiplier allowed for a step, and for the release of the number of examples.
constexpr double kMinNoise = 0x1p-4;
/// Method adp-sgd rounds its noise multipliers to powers of 2^(1 / kNoiseGrid).
constexpr double kNoiseGrid = 32.0;

bool close(double a, double b, double share = 1e-12) {
  return std::fabs(a - b) <= share * std::fmax(std::fabs(a), std::fabs(b));
}

/// Checks that the releases that a certificate lists are those that its method makes with the
/// settings `s`. run() returns one line for each difference. Functions named of_... check one kind
/// of method or number, and add their differences to wrong_.
class Rules {
 public:
  Rules(const nlohmann::json& json, const StatedNumbers& c, const Settings& s)
      : json_(json), c_(c), s_(s), epoch_(steps_per_epoch(c, s)) {}

  std::vector<std::string> run() {
    if (!s_.has("epsilon") && c_.size_noise > 0.0)
      wrong_.emplace_back("settings: expected epsilon with a private row count, found none");
    noise_before();
    if (c_.status == "refused") {
      begin();
      end();
    } else if (kinds_of(c_).engine) {
      of_engine();
    } else if (is_method("dp-agd")) {
      of_dp_agd();
    } else {
      of_linear();
    }
    return std::move(wrong_);
  }

 private:
  bool is_method(const char* method) const { return c_.method == method; }
  void expect(bool holds, const std::string& where, double expected, double found) {
    if (!holds)
      wrong_.push_back(where + ": expected " + number(expected) + ", found " + number(found));
  }
  void expect_close(const std::string& where, double expected, double found, double share = 1e-12) {
    expect(close(expected, found, share), where, expected, found);
  }
  double at(const char* key) const { return json_.at(key).get<double>(); }

  // Releases before the steps.

  void noise_before() {
    const auto k = static_cast<double>(c_.max_rows);
    if (c_.size_noise > 0.0 && s_.has("epsilon")) of_size(s_.number("epsilon"), k);
    if (c_.feature_noise == 0.0) return;
    if (s_.has("feature-sigma"))
      expect_close("feature_release's sigma", s_.number("feature-sigma"), c_.feature_noise);
    else if (s_.has("epsilon"))
      expect_close("feature_release's sigma, from the budget",
                   k / (privacy::gaussian_mu(s_.number("epsilon"), c_.training_delta) *
                        std::sqrt(s_.number("feature-share"))),
                   c_.feature_noise, 1e-9);
    if (json_.at("feature_release").contains("dimensions"))
      expect_close("feature_release's dimensions", s_.number("feature-dimensions"),
                   json_["feature_release"]["dimensions"].get<double>());
  }

  /// Checks that the noise on the released number of examples is the one that follows from the
  /// budget: from the whole epsilon or, if the budget was divided, from the part for that number.
  /// k: maximum number of rows of a unit. A run that ended with an error after this release does
  /// not state whether the budget was divided, so both are valid.
  void of_size(double epsilon, double k) {
    const double whole =
        std::fmax(kMinNoise, 10.0 * k * std::sqrt(-std::log(c_.training_delta)) / epsilon);
    double part = whole;
    const bool may_be_divided = c_.split || (c_.status == "refused" && kinds_of(c_).engine);
    try {
      const bool counted_once = c_.tuning && c_.tuning->count;
      if (counted_once)
        part = privacy::split_for_count(c_.epsilon, c_.delta, c_.max_rows).sigma;
      else if (may_be_divided)
        part = privacy::split_for_count(epsilon, c_.training_delta, c_.max_rows).sigma;
    } catch (const std::logic_error& e) {
      wrong_.emplace_back(std::string("size_release: ") + e.what());
    }
    // The tolerance is wide because tails of the Gaussian may round differently on other machines.
    const bool fits = c_.split ? close(part, c_.size_noise, 1e-6)
                               : close(whole, c_.size_noise) ||
                                     (may_be_divided && close(part, c_.size_noise, 1e-6));
    expect(fits, "size_release's noise_std, from the budget", may_be_divided ? part : whole,
           c_.size_noise);
  }

  /// Starts the comparison of the certificate's releases with the method's: copies them to left_,
  /// and removes the two that precede all steps: the noisy number of examples and the statistics
  /// for features, if the certificate states them.
  void begin() {
    left_ = c_.releases;
    if (c_.size_noise > 0.0) take("row count", privacy::Gaussian{c_.size_noise}, 1);
    if (c_.feature_noise > 0.0 && c_.status != "refused")
      take("features", privacy::Gaussian{c_.feature_noise}, 1);
  }
  /// Removes `count` releases of this mechanism from the front of left_ (the releases that are not
  /// matched yet), and returns true. If they are not there, removes nothing, reports a difference,
  /// in which `what` names them, and returns false.
  bool take(const std::string& what, const privacy::Mechanism& mechanism, std::uint64_t count) {
    if (left_.empty() || left_.front().mechanism != mechanism || left_.front().count < count) {
      wrong_.push_back("releases: expected " + std::to_string(count) + " of " +
                       exact_text(mechanism) + " (" + what + "), found " +
                       (left_.empty() ? std::string("none") : shown(left_.front())));
      return false;
    }
    left_.front().count -= count;
    if (left_.front().count == 0) left_.erase(left_.begin());
    return true;
  }
  void end() {
    if (!left_.empty())
      wrong_.push_back("releases: expected no more, found " + shown(left_.front()));
  }
  static std::string shown(const Release& r) {
    return std::to_string(r.count) + " of " + exact_text(r.mechanism);
  }

  // Sums of clipped gradients of batches.

  void of_engine() {
    const double delta = c_.training_delta;
    if (c_.steps == 0 || c_.steps_planned == 0)
      wrong_.emplace_back("steps, steps_planned: expected at least one, found none");
    expect_close("delta_for_rounding, from delta", kFailureShare * delta, c_.failure, 1e-6);
    if (is_method("adaclip")) expect(c_.clip == 1.0, "C of scaled gradients", 1.0, c_.clip);
    if (c_.quantile) of_quantile(*c_.quantile);
    begin();
    if (left_.empty()) wrong_.emplace_back("releases: expected those of the steps, found none");
    if (is_method("dpis"))
      of_importance();
    else
      of_steps();
  }

  void of_quantile(const privacy::NoisySums::Quantile& q) {
    const double share = s_.number("quantile-noise");
    expect_close("quantile's gradient_noise_multiplier", c_.sigma / std::sqrt(1.0 - share),
                 q.gradient_noise_multiplier);
    expect_close("quantile's count_noise_std", c_.sigma / (2.0 * std::sqrt(share)),
                 q.count_noise_std);
    const double last = json_.at("quantile").at("C_last").get<double>();
    // The tolerance covers the rounding of C_last to float.
    expect(last >= q.min_clip_norm * (1.0 - 1e-6) && last <= q.max_clip_norm * (1.0 + 1e-6),
           "quantile's C_last, from C_least to C_most", q.min_clip_norm, last);
  }

  /// Returns whether the method adds, at step `step`, noise whose multiplier is `ratio` times that
  /// of the first step.
  bool fits(std::uint64_t step, double ratio) const {
    const auto t = static_cast<double>(step);
    if (is_method("dpsgd-decay"))
      return std::fabs(std::log(ratio) + s_.number("noise-decay") *
                                             std::floor(t / static_cast<double>(epoch_))) < 1e-9;
    if (!is_method("adp-sgd") || s_.is_on("adp-constant-noise")) return ratio == 1.0;
    const double rounded = kNoiseGrid * std::log2(ratio);
    const double exact = kNoiseGrid * std::log2(adp_noise(step) / adp_noise(0));
    return std::fabs(rounded - std::nearbyint(rounded)) < 1e-6 &&
           std::fabs(rounded - exact) < 0.5 + 1e-6;
  }
  double adp_noise(std::uint64_t step) const {
    if (s_.text("schedule") == "adaptive")
      return std::pow(
          s_.number("adaptive-start") + static_cast<double>(step) * s_.number("adp-noise-growth"),
          0.25);
    return std::sqrt(s_.number("lr") / scheduled_rate(s_, c_.steps_planned, epoch_, step));
  }

  bool is_step(const privacy::Mechanism& m) const {
    if (c_.epoch_steps > 0)
      return m == privacy::Mechanism(privacy::AllocatedGaussian{c_.epoch_steps, sigma_of(m)}) &&
             sigma_of(m) > 0.0;
    return m == privacy::sampled_gaussian_mechanism(c_.q, sigma_of(m)) && sigma_of(m) > 0.0;
  }

  /// Checks that the releases that no rule has matched yet (left_) are the steps that the method
  /// planned, in order, each with its noise. If the run lost its random key, steps were repeated
  /// with new noise and charged again; repeated_steps() then checks the list, without its order.
  void of_steps() {
    double min = 1.0, max = 1.0;
    for (const Release& r : left_) {
      if (!is_step(r.mechanism)) {
        wrong_.push_back("releases: expected " +
                         (c_.epoch_steps > 0
                              ? "epochs of " + std::to_string(c_.epoch_steps) + " steps"
                              : "steps at rate " + number(c_.q)) +
                         ", found " + shown(r));
        return;
      }
      min = std::fmin(min, sigma_of(r.mechanism) / c_.sigma);
      max = std::fmax(max, sigma_of(r.mechanism) / c_.sigma);
    }
    std::uint64_t step = 0;
    if (c_.repeated > 0) {
      repeated_steps();
    } else {
      for (const Release& r : left_) {
        const double ratio = sigma_of(r.mechanism) / c_.sigma;
        for (const std::uint64_t end = step + r.count * c_.steps_of_release(); step < end; ++step)
          if (step >= c_.steps_planned || !fits(step, ratio)) {
            wrong_.push_back("releases: expected the noise of the method's rule at step " +
                             std::to_string(step) + ", found " + shown(r));
            return;
          }
      }
    }
    check_noise_over_time(min, max);
  }

  /// Checks the steps in left_ of a run that lost its random key, and so repeated some steps with
  /// new noise. It compares numbers of releases for each noise multiplier: each must be one that a
  /// planned step has, and must occur at least as often as the planned steps have it.
  void repeated_steps() {
    std::map<double, std::uint64_t> stated;  // key: ratio to sigma
    for (const Release& r : left_)
      stated[sigma_of(r.mechanism) / c_.sigma] += r.count * c_.steps_of_release();
    const std::uint64_t made = c_.steps - c_.repeated_steps();
    std::map<double, std::uint64_t> needed;
    for (std::uint64_t step = 0; step < std::min(made, c_.steps_planned); ++step) {
      const auto found =
          std::ranges::find_if(stated, [&](const auto& one) { return fits(step, one.first); });
      if (found == stated.end()) {
        wrong_.push_back("releases: expected the noise of step " + std::to_string(step) +
                         ", found none");
        return;
      }
      ++needed[found->first];
    }
    for (const auto& [ratio, count] : stated) {
      bool known = false;
      for (std::uint64_t step = 0; step < c_.steps_planned && !known; ++step)
        known = fits(step, ratio);
      if (!known || count < needed[ratio])
        wrong_.push_back(
            "releases: expected the method's noise in all steps, "
            "found " +
            std::to_string(count) + " of " + number(ratio) + " times sigma");
    }
  }

  void check_noise_over_time(double min, double max) {
    const bool stated = json_.contains("noise_over_time");
    // If steps were repeated with a new random key, the budget may end before the last planned
    // steps. noise_over_time covers the noise of these steps, too.
    const bool may_be_cut = c_.repeated > 0;
    if (stated != (min != max) && !(stated && may_be_cut)) {
      wrong_.emplace_back("noise_over_time: expected if and only if steps differ in noise");
      return;
    }
    if (!stated) return;
    const double least = json_["noise_over_time"]["least"].get<double>();
    expect(close(min, least) || (may_be_cut && least <= min), "noise_over_time's least", min,
           least);
    const double most = json_["noise_over_time"]["most"].get<double>();
    expect(close(max, most) || (may_be_cut && most >= max), "noise_over_time's most", max, most);
  }

  /// Checks the steps of method DPIS (importance sampling) in left_, the releases that no rule has
  /// matched yet. Each epoch begins with noisy sums of gradient norms, from which the sampling rate
  /// and the noise of its steps follow.
  void of_importance() {
    const privacy::Mechanism totals = privacy::Gaussian{c_.norm_total_noise};
    expect_close("norm_total_noise, from the row count", s_.number("dpis-total-noise") * c_.size,
                 c_.norm_total_noise);
    const std::uint64_t each = s_.is_on("dpis-adaptive-clip") ? 2 : 1;
    const double min_rate = c_.expected_batch / c_.size * (1.0 - 1e-9);
    const bool in_order = !c_.lost_a_key();
    std::uint64_t totals_made = 0, steps = 0;
    // Number of steps that may follow the last sums of norms in their epoch.
    std::uint64_t left_of_epoch = 0;
    for (const Release& r : left_) {
      const double q = rate_of(r.mechanism), sigma = sigma_of(r.mechanism);
      const std::string where = "releases, after step " + std::to_string(steps);
      if (r.mechanism == totals) {
        totals_made += r.count;
        if (in_order && (r.count != each || left_of_epoch > 0))
          wrong_.push_back(where + ": expected " + std::to_string(each) +
                           " sums of norms as an epoch begins, found " + shown(r));
        left_of_epoch = epoch_;
        continue;
      }
      steps += r.count;
      if (!std::holds_alternative<privacy::PoissonGaussian>(r.mechanism) || q < min_rate ||
          sigma < kMinNoise * q / min_rate * (1.0 - 1e-6))
        wrong_.push_back(where + ": expected a rate of at least " + number(min_rate) +
                         " and noise of at least 1/16, found " + shown(r));
      if (in_order && r.count > left_of_epoch)
        wrong_.push_back(where + ": expected at most the " + std::to_string(left_of_epoch) +
                         " steps that are left of an epoch, found " + shown(r));
      left_of_epoch -= std::min(left_of_epoch, r.count);
    }
    of_importance_filter();
    if (in_order && totals_made < (steps + epoch_ - 1) / epoch_ * each)
      wrong_.push_back("releases: expected sums of norms for each epoch, found " +
                       std::to_string(totals_made));
    if (json_.contains("noise_over_time"))
      wrong_.emplace_back("noise_over_time: expected none for dpis, found one");
  }

  /// Checks that the releases of DPIS stay within its budget: a Renyi filter with the run's budget
  /// and order must admit them all.
  void of_importance_filter() {
    try {
      privacy::Filter filter(
          privacy::renyi_budget(c_.order, c_.split ? c_.plan_epsilon() : s_.number("epsilon"),
                                c_.plan_delta() - c_.failure, 0.0, c_.max_rows));
      for (const Release& r : c_.plan_releases())
        if (!filter.charge(r)) {
          wrong_.push_back("releases: expected no more than the filter's budget allows, found " +
                           shown(r));
          return;
        }
    } catch (const std::exception& e) {
      wrong_.push_back(std::string("the filter: ") + e.what());
    }
  }

  // Linear models.

  /// Checks the sensitivity that a certificate states for a sum: it must be the largest
  /// contribution of one example (bound) plus its rounding error. relative: relative error of the
  /// contribution. dimension: number of coordinates, each of which is rounded. For more than about
  /// 2^28 examples the stated number may be larger.
  void expect_linear(const char* what, double bound, double relative, double dimension,
                     double stated) {
    const double expected = bound * (1.0 + relative) +
                            0.5 * std::sqrt(dimension) * std::ldexp(1.0, std::ilogb(bound) - 23);
    const bool few =
        c_.size + 64.0 * c_.size_noise + 16.0 * static_cast<double>(c_.max_rows) < 0x1p28;
    expect(few ? close(expected, stated) : stated >= expected * (1.0 - 1e-12),
           std::string(what) + ", from the clipping bound and rounding", expected, stated);
  }
  void of_losses() {
    expect_linear("loss_sensitivity", at("loss_clip"), 0x1p-23, 1.0, c_.loss_sensitivity);
  }

  void of_dp_agd() {
    of_losses();
    for (const privacy::NoisyValue& l : c_.noisy_values) {
      if (l.name != "sum of clipped gradients") continue;
      expect_linear("sensitivity", c_.clip, 0x1p-21, static_cast<double>(l.numbers),
                    c_.sensitivity);
      expect(l.sensitivity == c_.sensitivity, "sensitivity of noisy sums", c_.sensitivity,
             l.sensitivity);
    }
    if (s_.number("mini-batch") > 0.0) {
      const double rate = std::fmin(1.0, s_.number("mini-batch") / c_.size);
      const double threshold = std::ceil(rate * 0x1p32);
      expect(static_cast<double>(c_.threshold) == threshold,
             "sampling_threshold, from mini-batch and row count", threshold,
             static_cast<double>(c_.threshold));
    }
    const bool classical = s_.text("conversion") == "classical";
    const double delta = c_.training_delta * (1.0 - kFailureShare);
    const double budget = s_.number("epsilon");
    const double k = static_cast<double>(c_.max_rows);
    double epsilon = budget;
    if (classical) {
      const double l = -std::log(delta);
      const double root = std::sqrt(l + budget) - std::sqrt(l);
      epsilon = std::fmin(budget, privacy::epsilon_from_zcdp(root * root, delta));
    }
    expect_close("epsilon, from the filter", epsilon, c_.training_epsilon);
    privacy::Filter filter(privacy::zcdp_budget(epsilon, delta, 0.0, c_.max_rows));
    const auto& stated = json_.at("filter");
    const double rho = filter.limit();
    expect_close("filter's rho, from epsilon and delta", rho, stated.at("rho").get<double>(), 1e-9);
    for (const Release& r : c_.releases)
      if (!filter.charge(r)) {
        wrong_.push_back("releases: expected no more than the filter's rho allows, found " +
                         shown(r));
        return;
      }
    expect_close("filter's rho_spent, from the releases", rho * (1.0 - filter.remaining()),
                 stated.at("rho_spent").get<double>(), 1e-9);

    const bool by_rho = s_.text("budget-split") == "rho";
    const bool gumbel = s_.text("noisy-min") == "gumbel";
    double splits = s_.number("splits");
    double of_gradient = 0.0, of_selection = 0.0;
    if (by_rho) {
      if (!(splits > 0.0)) splits = std::fmax(10.0, c_.size * budget / 100.0);
      of_gradient = rho / splits * s_.number("gradient-share");
      of_selection = rho / splits * (1.0 - s_.number("gradient-share"));
    } else {
      const double part = budget / (2.0 * (splits > 0.0 ? splits : 60.0));
      of_gradient = part * part / (4.0 * std::log(1.25 / c_.training_delta));
      of_selection = part * part / (gumbel ? 8.0 : 2.0);
    }
    of_gradient /= k * k;
    of_selection /= k * k;
    const double choice = std::sqrt((gumbel ? 8.0 : 2.0) * of_selection);
    begin();
    std::uint64_t gradients = 0, choices = 0;
    for (const Release& r : left_) {
      const auto* const range = std::get_if<privacy::BoundedRange>(&r.mechanism);
      const auto* const pure = std::get_if<privacy::ApproximateDp>(&r.mechanism);
      const double sigma = sigma_of(r.mechanism);
      const bool is_choice =
          gumbel ? range != nullptr && close(range->epsilon, choice, 1e-9)
                 : pure != nullptr && pure->delta == 0.0 && close(pure->epsilon, choice, 1e-9);
      const bool is_gradient =
          sigma > 0.0 && rate_of(r.mechanism) == 1.0 && is_gradient_noise(sigma, of_gradient);
      if (is_choice) choices += r.count;
      if (is_gradient) gradients += r.count;
      if (!is_choice && !is_gradient)
        wrong_.push_back(
            "releases: expected gradients and choices with the settings' shares, found " +
            shown(r));
    }
    if (gradients < c_.steps || choices < c_.steps)
      wrong_.push_back("steps: expected a gradient and a choice for each, found " +
                       std::to_string(c_.steps) + " steps, " + std::to_string(gradients) +
                       " gradients and " + std::to_string(choices) + " choices");
  }

  /// Returns whether DP-AGD may release a gradient with this noise multiplier sigma, at the cost
  /// rho = 1 / (2 sigma^2). The cost must be share (1 + gamma)^k or gamma share (1 + gamma)^k with
  /// a whole number k >= 0. share: cost of the first gradient. Whenever no step size helps, the
  /// gradient is measured again at gamma times its cost, and later gradients cost 1 + gamma times
  /// as much.
  bool is_gradient_noise(double sigma, double share) const {
    const double gamma = s_.number("gamma");
    const double rho = 0.5 / (sigma * sigma);
    if (close(share, rho, 1e-9)) return true;
    if (!(gamma > 0.0) || !std::isfinite(gamma)) return false;
    const double growth = std::log1p(gamma);
    const auto is_grown = [&](double first) {
      const double times = std::nearbyint(std::log(rho / first) / growth);
      return times >= 0.0 && close(first * std::exp(times * growth), rho, 1e-9);
    };
    return is_grown(share) || is_grown(gamma * share);
  }

  void of_linear() {
    begin();
    const double delta = c_.training_delta * (1.0 - kFailureShare);
    if (is_method("outpert")) {
      take("minimum", privacy::Gaussian{c_.sigma}, 1);
      for (const privacy::NoisyValue& l : c_.noisy_values) {
        if (l.name != "minimum of the objective") continue;
        expect(l.grid == at("grid"), "grid of the noisy minimum", at("grid"), l.grid);
        expect(l.noise_std == c_.noise_std, "noise of the noisy minimum", c_.noise_std,
               l.noise_std);
      }
    } else if (is_method("objpert")) {
      const auto* const found =
          left_.empty() ? nullptr : std::get_if<privacy::ApproximateDp>(&left_[0].mechanism);
      if (found != nullptr) {
        const privacy::ApproximateDp all = *found;
        expect_close("releases, epsilon of all together", s_.number("epsilon"), all.epsilon);
        expect_close("releases, delta of all together", delta, all.delta);
        take("objective perturbation", all, 1);
      } else {
        wrong_.emplace_back("releases: expected one guarantee for all together, found none");
      }
    } else if (is_method("privgene")) {
      of_losses();
      const double parents = at("parents"), generations = at("generations");
      take("choices", privacy::BoundedRange{at("selection_epsilon")},
           static_cast<std::uint64_t>((generations - 1.0) * parents + 1.0));
      double expected = s_.number("generations");
      if (expected == 0.0)
        expected =
            std::clamp(std::ceil(1.25e-3 * c_.size * s_.number("epsilon") / parents), 8.0, 1e6);
      expect(expected == generations, "generations", expected, generations);
      // The rest of the budget is divided equally among the choices.
      const double k = static_cast<double>(c_.max_rows);
      double before = 0.0;
      for (const double sigma : {c_.size_noise, c_.feature_noise})
        if (sigma > 0.0) before += 0.5 / (sigma * sigma);
      const double rho = privacy::zcdp_for(s_.number("epsilon"), delta) / (k * k) - before;
      expect_close("selection_epsilon, from the budget",
                   std::sqrt(8.0 * rho / ((generations - 1.0) * parents + 1.0)),
                   at("selection_epsilon"), 1e-8);
    }
    end();
    if (is_method("outpert") || is_method("objpert")) of_risk();
  }

  /// Checks the grid of the noisy minimum, and that its sensitivity is not more than `least`, that
  /// of the minimum, and the rounding to the grid. The grid adds a millionth to the sensitivity,
  /// unless the noise would be less than 2^20 or more than 2^39 grid steps.
  void of_minimum(double least) {
    double numbers = 0.0;
    for (const privacy::NoisyValue& l : c_.noisy_values)
      if (l.name == "minimum of the objective") numbers = static_cast<double>(l.numbers);
    if (numbers == 0.0) return;
    const double root = std::sqrt(numbers), up = 1.0 + 1e-12;
    const int noise = std::ilogb(least * c_.sigma * up);
    const double grid =
        std::ldexp(1.0, std::clamp(std::ilogb(1e-6 * least / root * up), noise - 38, noise - 20));
    expect(at("grid") <= grid, "grid, at most", grid, at("grid"));
    const double most = (least + root * grid) * (1.0 + 1e-11);
    expect(c_.sensitivity <= most, "sensitivity, at most", most, c_.sensitivity);
  }

  void of_risk() {
    const double regulariser = at("regulariser"), tolerance = at("solver_tolerance");
    const double asked = s_.number("l2") * c_.size;
    if (is_method("outpert")) {
      expect_close("regulariser, l2 times the row count", asked, regulariser);
      const double least = (1.0 + 2.0 * tolerance) / regulariser;
      expect(c_.sensitivity >= least * (1.0 - 1e-12), "sensitivity, at least", least,
             c_.sensitivity);
      of_minimum(least);
      return;
    }
    expect(regulariser >= asked * (1.0 - 1e-12), "regulariser, at least l2 times the row count",
           asked, regulariser);
    const double curvature = json_.contains("huber") ? 1.0 / (2.0 * at("huber")) : 0.25;
    const double kappa = std::log1p(curvature / regulariser);
    expect(at("kappa") >= kappa * (1.0 - 1e-12), "kappa, at least", kappa, at("kappa"));
    expect_close("output_sensitivity", 2.0 * tolerance / regulariser, at("output_sensitivity"));
  }

  const nlohmann::json& json_;
  const StatedNumbers& c_;
  const Settings& s_;
  std::uint64_t epoch_;
  std::vector<Release> left_;
  std::vector<std::string> wrong_;
};

}  // namespace

std::vector<std::string> check_release_rules(const nlohmann::json& json, const StatedNumbers& c,
                                             const Settings& settings) {
  return Rules(json, c, settings).run();
}

}  // namespace cudp::verify
