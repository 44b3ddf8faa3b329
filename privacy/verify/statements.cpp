#include "privacy/verify/statements.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <utility>
#include <variant>

#include "privacy/filter.hpp"
#include "privacy/mechanism/mechanism_text.hpp"
#include "privacy/verify/method_kinds.hpp"

namespace cudp::verify {
namespace {

constexpr double kTwo32 = 0x1p32;

/// Implementation of check_statements(): compares a certificate's numbers with each other, the
/// ledger and the settings.
class Statements {
 public:
  Statements(const StatedNumbers& certificate, const Charges& charges, const Settings& settings,
             bool engine, Bounds& bounds, Findings& findings)
      : c_(certificate),
        charges_(charges),
        settings_(settings),
        engine_(engine),
        bounds_(bounds),
        findings_(findings) {}

  void check_numbers() {
    const StatedNumbers& c = c_;
    if (c.loss_sensitivity > 0.0 && settings_.has("loss-clip"))
      findings_.expect(c.loss_sensitivity >= settings_.number("loss-clip"), "sensitivity",
                       "certificate's loss_sensitivity, at least the settings' loss-clip",
                       settings_.number("loss-clip"), c.loss_sensitivity);
    if (c.status == "refused" || !engine_) return;
    findings_.expect(c.sensitivity >= c.clip, "noise", "certificate's sensitivity, at least C",
                     c.clip, c.sensitivity);
    const double noise = c.quantile ? c.quantile->gradient_noise_multiplier : c.sigma;
    findings_.expect(c.noise_std == noise * c.sensitivity, "noise", "certificate's noise_std",
                     noise * c.sensitivity, c.noise_std);
    if (c.quantile) {
      // Gradient sum and count together are one Gaussian mechanism: their mu^2 are added.
      const privacy::NoisySums::Quantile& q = *c.quantile;
      const double mu =
          std::hypot(1.0 / q.gradient_noise_multiplier, q.count_sensitivity / q.count_noise_std);
      findings_.expect(std::fabs(mu * c.sigma - 1.0) < 1e-12, "noise",
                       "certificate's sigma, of sum and count together", 1.0 / mu, c.sigma);
    }
    const double grid = engine_grid((c_.method == "dpis") ? 1.0 : c.clip);
    findings_.expect(c.grid == grid, "noise", "certificate's grid", grid, c.grid);
    const double q = static_cast<double>(c.threshold) / kTwo32;
    findings_.expect(c.q == q, "batch", "certificate's q, from its threshold", q, c.q);
    if (c.epoch_steps > 0 || c.sampling == "allocation") {
      const std::uint64_t steps = steps_per_epoch(c, settings_);
      findings_.expect(c.epoch_steps == steps && c.sampling == "allocation", "batch",
                       "certificate's steps_per_epoch, from batch and size",
                       static_cast<double>(steps), static_cast<double>(c.epoch_steps));
      const double mean = c.size / static_cast<double>(steps);
      findings_.expect(c.expected_batch == mean, "divisor",
                       "certificate's expected batch, from size and steps_per_epoch", mean,
                       c.expected_batch);
      if (c.steps_planned % steps != 0)
        findings_.add("batch", "certificate's steps_planned: expected whole epochs of " +
                                   std::to_string(steps) + ", found " +
                                   std::to_string(c.steps_planned));
    }
    const double threshold = std::ceil(c.expected_batch / c.size * kTwo32);
    findings_.expect(static_cast<double>(c.threshold) == threshold, "batch",
                     "certificate's threshold, from batch and size", threshold,
                     static_cast<double>(c.threshold));
    if (settings_.empty() || c.epoch_steps > 0) return;
    const double batch = std::fmin(settings_.number("batch"), c.size);
    findings_.expect(c.expected_batch == batch, "divisor", "certificate's expected batch", batch,
                     c.expected_batch);
  }

  /// Number of releases of each mechanism; the key is the mechanism's exact text.
  using Counts = std::map<std::string, std::uint64_t>;
  static Counts counts_of(const std::vector<privacy::Release>& releases) {
    Counts counts;
    for (const privacy::Release& r : releases) counts[exact_text(r.mechanism)] += r.count;
    return counts;
  }

  void check_ledger() {
    const Counts stated = counts_of(c_.releases);
    const Counts charged = counts_of(charges_.ledger.releases());
    Counts all = stated;
    all.insert(charged.begin(), charged.end());
    const bool planned = !c_.is_finished() && c_.status != "refused";
    for (const auto& [mechanism, unused] : all) {
      const std::uint64_t says = stated.contains(mechanism) ? stated.at(mechanism) : 0;
      const std::uint64_t has = charged.contains(mechanism) ? charged.at(mechanism) : 0;
      // The certificate of an unfinished run states its plan, which has at least the releases
      // charged so far. With a filter it states at most those charged so far.
      const bool fits = !planned                   ? says == has
                        : charges_.ledger.budget() ? says <= has
                                                   : says >= has;
      if (!fits)
        findings_.add("ledger", mechanism + ": the certificate states " + std::to_string(says) +
                                    ", the ledger has " + std::to_string(has));
    }
    if (!c_.is_finished() || !engine_) return;
    std::uint64_t steps = 0;
    for (const Charge& c : charges_.lines)
      if (c.numbered && !is_epoch_total(c_, c.release.mechanism))
        steps += c.release.count * c_.steps_of_release();
    if (steps != c_.steps)
      findings_.add("ledger", "certificate's steps: expected " + std::to_string(steps) +
                                  " that were charged, found " + std::to_string(c_.steps));
  }

  /// Checks that the certificate and the ledger divide the budget correctly between the noisy
  /// number of examples and all later releases. The later ones are planned with that number, so the
  /// parts must be fixed before it is released, and follow from epsilon, delta and the maximum
  /// number of rows of a unit alone.
  void check_split() {
    if (c_.status == "refused" || c_.size_noise == 0.0) return;
    const auto& charged = charges_.ledger.split();
    if (charged.has_value() && !c_.split)
      return findings_.add("ledger",
                           "certificate: expected the parts of the budget that the ledger "
                           "begins with, found none");
    if (!c_.split) return check_order();
    if (!engine_)
      findings_.add("epsilon", "certificate: expected no parts of the budget with method " +
                                   c_.method + ", found some");
    if (!charges_.lines.empty() && charged != c_.split)
      findings_.add("ledger",
                    "certificate's parts of the budget: expected those that the ledger begins "
                    "with, found others");
    const privacy::CountSplit& s = *c_.split;
    const auto part = [&](const char* what, double expected, double found) {
      findings_.expect(found == expected, "epsilon", std::string("certificate's ") + what, expected,
                       found);
    };
    constexpr double kDown = 1.0 - 0x1p-52;
    // A tuning divides its own budget, and one noisy number of examples serves all of its
    // trainings. So the parts are not 4 % and 10 % of this training's budget. tuning.cpp checks
    // them against the tuning's budget.
    if (c_.tuning && c_.tuning->count) {
      part("after_size_release epsilon, the rest", (s.epsilon - s.count_epsilon) * kDown,
           s.training_epsilon);
      part("after_size_release delta, the rest", (s.delta - s.count_delta) * kDown,
           s.training_delta);
      return check_parts(s);
    }
    part("size_release epsilon, 4 % of all", 0.04 * s.epsilon, s.count_epsilon);
    part("size_release delta, 10 % of all", 0.1 * s.delta, s.count_delta);
    part("after_size_release epsilon, the rest", (s.epsilon - 0.04 * s.epsilon) * kDown,
         s.training_epsilon);
    part("after_size_release delta, the rest", (s.delta - 0.1 * s.delta) * kDown, s.training_delta);
    check_parts(s);
  }

  void check_parts(const privacy::CountSplit& s) {
    try {
      privacy::check(s);
    } catch (const std::invalid_argument& e) {
      findings_.add("epsilon", std::string("certificate's parts of the budget: ") + e.what());
    }
  }

  /// Checks the Renyi order of a run of an earlier version of the program, which did not divide the
  /// budget. It must follow from the budget's epsilon and delta alone, and not be chosen from
  /// released values.
  void check_order() {
    if (!engine_ || !settings_.has("epsilon")) return;
    const double l = -std::log(c_.training_delta);
    const double root = std::sqrt(l + settings_.number("epsilon")) - std::sqrt(l);
    const double order = std::fmin(1.0 + 0.65 * std::sqrt(l) / root, 1e5);
    findings_.expect(std::fabs(c_.order / order - 1.0) < 1e-12, "epsilon",
                     "certificate's order, from the budget", order, c_.order);
  }

  /// Checks what the certificate states if the run lost its random key (the secret key that draws
  /// the noise) and continued with a new one. Steps since the last checkpoint were then repeated
  /// with new noise. So epsilon must be that of the whole budget, and no epsilons for groups may be
  /// stated. Also checks that the number of losses is the ledger's. has_ledger: whether the ledger
  /// is available.
  void check_lost_keys(bool has_ledger) {
    const std::uint64_t lost = charges_.lost.size();
    const std::uint64_t stated = c_.keys_lost.value_or(0);
    if (has_ledger && stated != lost)
      findings_.add("ledger", "certificate's keys_lost: expected " + std::to_string(lost) +
                                  ", found " + std::to_string(stated));
    if (!engine_ || (lost == 0 && !c_.lost_a_key())) return;
    if (c_.bounds_groups)
      findings_.add("epsilon",
                    "certificate's groups: expected no bounds after a key was lost, found some");
    if (settings_.has("epsilon"))
      findings_.expect(c_.training_epsilon == settings_.number("epsilon"), "epsilon",
                       "certificate's epsilon, equal to the settings' after a key was lost",
                       settings_.number("epsilon"), c_.training_epsilon);
  }

  /// Checks the certificate's epsilon for the test metrics of held-out rows: it must cover their
  /// release together with that of the noisy number of training examples, for one unit of privacy.
  /// Also checks the certificate's epsilon and delta for everything. They must be the larger ones
  /// of those of the training and of the test metrics, because each unit is used for only one of
  /// the two.
  void check_holdout() {
    if (!c_.holdout) return;
    const auto& h = *c_.holdout;
    // A group of units may have some that were trained on and some that were held out. The epsilons
    // of a table for the training alone would then be too small.
    if (c_.bounds_groups)
      findings_.add("epsilon",
                    "certificate's groups: expected no bounds with held-out rows, found some");
    if (h.releases > 0) {
      std::vector<privacy::Release> all = {{privacy::Gaussian{h.sigma}, h.releases}};
      if (c_.size_noise > 0.0) all.push_back({privacy::Gaussian{c_.size_noise}, 1});
      try {
        const double epsilon =
            bounds_.epsilon({.releases = all, .group = c_.max_rows}, {}, h.delta).epsilon_lower;
        findings_.expect(h.epsilon >= epsilon * (1.0 - 1e-9), "epsilon",
                         "certificate's epsilon of held-out rows, at least", epsilon, h.epsilon);
        // A run draws the least noise that its budget allows, so a statement of more noise is
        // false.
        findings_.expect(h.epsilon <= epsilon * (1.0 + 1e-6), "epsilon",
                         "certificate's epsilon of held-out rows, at most", epsilon, h.epsilon);
      } catch (const std::exception& e) {
        findings_.add("epsilon", std::string("held-out rows: ") + e.what());
      }
    }
    if (c_.tuning) return;  // epsilon is that of the selection: tuning.cpp
    const double epsilon = std::fmax(c_.training_epsilon, h.epsilon);
    const double delta = std::fmax(c_.training_delta, h.delta);
    findings_.expect(c_.epsilon == epsilon, "epsilon",
                     "certificate's epsilon, the larger of both parts'", epsilon, c_.epsilon);
    findings_.expect(c_.delta == delta, "epsilon", "certificate's delta, the larger of both parts'",
                     delta, c_.delta);
  }

  void check_epsilon() {
    const StatedNumbers& c = c_;
    if (!(c.training_epsilon >= 0.0) || !std::isfinite(c.training_epsilon)) {
      findings_.add("epsilon", "the certificate has none");
      return;
    }
    if (const auto& budget = charges_.ledger.budget()) {
      findings_.expect(c.plan_epsilon() == budget->epsilon, "epsilon",
                       "certificate's epsilon, equal to the filter's budget", budget->epsilon,
                       c.plan_epsilon());
      if (budget->group != c.max_rows)
        findings_.add("epsilon",
                      "certificate's max_rows: expected " + std::to_string(budget->group) +
                          " of the filter's budget, found " + std::to_string(c.max_rows));
      findings_.expect(budget->delta <= c.plan_delta(), "epsilon", "delta of the filter's budget",
                       c.plan_delta(), budget->delta);
      try {
        static_cast<void>(privacy::Filter(charges_.ledger));
        findings_.epsilon = c.training_epsilon;
        if (budget->order > 0.0) {
          const privacy::PrivacyBound& spent = bounds_.epsilon(
              {.releases = charges_.ledger.releases_after_count(), .group = c.max_rows},
              {.kind = privacy::AccountantKind::rdp, .orders = {budget->order}}, budget->delta);
          findings_.epsilon = spent.epsilon + (c.split ? c.split->count_epsilon : 0.0);
          findings_.expect(spent.epsilon <= budget->epsilon * (1.0 + 1e-9), "epsilon",
                           "epsilon of the charges, at most the budget", budget->epsilon,
                           spent.epsilon);
        }
      } catch (const std::exception& e) {
        findings_.add("epsilon", std::string("the filter: ") + e.what());
      }
      return;
    }
    for (const privacy::Release& r : c.releases)
      if (const auto* stated = std::get_if<privacy::ApproximateDp>(&r.mechanism)) {
        // The bound of objective perturbation covers all of its releases together.
        findings_.expect(c.training_epsilon >= stated->epsilon, "epsilon", "certificate's epsilon",
                         stated->epsilon, c.training_epsilon);
        findings_.skip("epsilon of " + c.method +
                       ", which is proved for all its releases together");
        return;
      }
    const bool engine = engine_ && c.status != "refused";
    try {
      const privacy::PrivacyBound& bound =
          bounds_.epsilon({.releases = c.plan_releases(), .group = c.max_rows},
                          accountant_options(c, engine), c.plan_delta() - c.failure);
      findings_.epsilon = bound.epsilon + (c.split ? c.split->count_epsilon : 0.0);
      const double min_epsilon = (engine ? bound.epsilon : bound.epsilon_lower) * (1.0 - 1e-9);
      findings_.expect(c.plan_epsilon() >= min_epsilon, "epsilon",
                       "certificate's epsilon, at least that of its releases", min_epsilon,
                       c.plan_epsilon());
    } catch (const std::exception& e) {
      findings_.add("epsilon", std::string("the accountant: ") + e.what());
    }
  }

 private:
  const StatedNumbers& c_;
  const Charges& charges_;
  const Settings& settings_;
  bool engine_;
  Bounds& bounds_;
  Findings& findings_;
};

}  // namespace

double sigma_of(const privacy::Mechanism& m) {
  if (const auto* sampled = std::get_if<privacy::PoissonGaussian>(&m)) return sampled->sigma;
  if (const auto* gaussian = std::get_if<privacy::Gaussian>(&m)) return gaussian->sigma;
  if (const auto* epoch = std::get_if<privacy::AllocatedGaussian>(&m)) return epoch->sigma;
  return 0.0;
}

double rate_of(const privacy::Mechanism& m) {
  if (const auto* sampled = std::get_if<privacy::PoissonGaussian>(&m)) return sampled->q;
  if (const auto* epoch = std::get_if<privacy::AllocatedGaussian>(&m))
    return 1.0 / static_cast<double>(epoch->steps);
  return 1.0;
}

bool is_epoch_total(const StatedNumbers& c, const privacy::Mechanism& m) {
  return c.norm_total_noise > 0.0 && m == privacy::Mechanism(privacy::Gaussian{c.norm_total_noise});
}

privacy::AccountantOptions accountant_options(const StatedNumbers& c, bool engine) {
  privacy::AccountantOptions options;
  if (engine && c.accountant == "rdp") options.kind = privacy::AccountantKind::rdp;
  if (engine && c.accountant == "advanced") options.kind = privacy::AccountantKind::advanced;
  if (c.order_fixed) options.orders = {c.order};
  return options;
}

void check_statements(const StatedNumbers& certificate, const Charges* charges,
                      const Settings& settings, bool engine, Bounds& bounds, Findings& findings) {
  const Charges none;
  Statements statements(certificate, charges != nullptr ? *charges : none, settings, engine, bounds,
                        findings);
  statements.check_numbers();
  statements.check_split();
  if (charges != nullptr) statements.check_ledger();
  statements.check_epsilon();
  statements.check_lost_keys(charges != nullptr);
  statements.check_holdout();
}

}  // namespace cudp::verify
