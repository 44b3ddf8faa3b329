#include "runtime/results/run_spending.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "privacy/accountant.hpp"
#include "privacy/filter.hpp"
#include "privacy/verify/statements.hpp"
#include "runtime/base/error.hpp"

namespace cudp {
namespace {

/// Names of the methods whose releases follow from the settings and the number of examples alone.
/// The others are dp-agd and dpis, which choose releases during training, and objpert, which has
/// one bound for all its releases together.
constexpr const char* kPlanning[] = {"dpsgd",      "dpsgd-ts", "dpsgd-decay", "dpsgd-quantile",
                                     "adp-sgd",    "adaclip",  "sgd-ma",      "sgd-adv",
                                     "norm-bound", "outpert",  "privgene"};

/// Names of those methods in kPlanning whose releases are all known before the first one is made.
constexpr const char* kPlannedAtStart[] = {
    "dpsgd",   "dpsgd-ts", "dpsgd-decay", "dpsgd-quantile", "adp-sgd",
    "adaclip", "sgd-ma",   "sgd-adv",     "norm-bound",     "outpert"};

bool names(std::span<const char* const> methods, const std::string& method) {
  return std::ranges::find(methods, method) != methods.end();
}

/// Returns whether the certificate lists all releases that the run will have made at its end. This
/// is true for a finished run. A run in progress lists its future releases only if they are
/// planned, i.e. not if a filter admits them one by one (--fresh-noise-allowed), nor if steps must
/// be repeated because a key was lost.
bool lists_all(const verify::StatedNumbers& c) {
  return c.status != "not finished" ||
         (names(kPlannedAtStart, c.method) && !c.lost_a_key() && c.steps >= c.steps_planned);
}

/// Returns whether all releases in the certificate were fixed before the first of them. There are
/// three exceptions: releases that depend on a noisy number of examples; a run whose random key was
/// lost, because the number of steps may then have been chosen by looking at released values; and a
/// certificate that states the whole budget instead of the smaller epsilon of the releases.
bool is_fixed_ahead(const verify::StatedNumbers& c) {
  if (!names(kPlanning, c.method)) return false;
  if (c.size_noise > 0.0 || c.order_fixed || c.lost_a_key()) return false;
  if (c.steps_planned == 0) return true;  // trained in a single step, so there was only one key
  const double of_releases = privacy::Accountant({.releases = c.releases, .group = c.max_rows},
                                                 verify::accountant_options(c, true))
                                 .epsilon(c.delta - c.failure)
                                 .epsilon;
  return c.epsilon <= of_releases * (1.0 + 1e-6);
}

}  // namespace

privacy::RunSpending spending_of(const nlohmann::json& certificate,
                                 const verify::StatedNumbers& stated, const std::string& source) {
  if (!std::isfinite(stated.epsilon))
    throw InputError(source + ": expected a certificate with an epsilon, found none");
  // A tuning that first released a noisy number of examples made a choice that depends on it. Only
  // the stated guarantee of the whole tuning bounds both.
  if (stated.tuning && stated.tuning->count)
    return {.run = privacy::StatedRun{stated.epsilon, stated.delta}};
  if (stated.tuning) return {.run = stated.tuning->run()};
  // If rows were held out, only the stated guarantee bounds the training and the figures of the
  // held-out rows together.
  if (stated.holdout) return {.run = privacy::StatedRun{stated.epsilon, stated.delta}};
  // Releases that a filter admits are chosen adaptively, so its whole budget counts as spent.
  if (certificate.contains("filter"))
    return {.run = privacy::ZcdpFilteredRun{certificate["filter"].at("rho").get<double>()},
            .failure = stated.failure};
  // The same holds for a Renyi filter. A run with such a filter but without a release yet counts
  // with its stated guarantee instead, below.
  if (stated.order_fixed && !stated.split && !stated.releases.empty()) {
    const privacy::Filter filter(
        privacy::renyi_budget(stated.order, stated.epsilon, stated.delta - stated.failure));
    return {.run = privacy::RenyiFilteredRun{stated.order, filter.limit()},
            .failure = stated.failure};
  }
  if (!lists_all(stated)) return {.run = privacy::StatedRun{stated.epsilon, stated.delta}};
  // Batches, steps and noise depend on the run's noisy row count, so the releases were chosen
  // adaptively.
  if (stated.split) return {.run = privacy::ChosenRun{stated.releases}, .failure = stated.failure};
  // A run without releases would count as epsilon 0.
  if (stated.releases.empty())
    throw InputError(source + ", releases: expected what the run released, found none");
  if (stated.status != "refused" && !is_fixed_ahead(stated))
    return {.run = privacy::StatedRun{stated.epsilon, stated.delta}};
  return {.run = privacy::PlannedRun{stated.releases}, .failure = stated.failure};
}

privacy::RunSpending spending_given_count(const verify::StatedNumbers& stated) {
  if (stated.order_fixed) {
    const privacy::Filter filter(privacy::renyi_budget(stated.order, stated.plan_epsilon(),
                                                       stated.plan_delta() - stated.failure, 0.0,
                                                       stated.max_rows));
    return {.run = privacy::RenyiFilteredRun{stated.order, filter.limit()},
            .failure = stated.failure};
  }
  privacy::RunSpending planned{.run = privacy::PlannedRun{stated.plan_releases()},
                               .failure = stated.failure};
  // A run with random allocation counts with its stated guarantee: it has no Renyi divergence, and
  // its privacy loss distribution takes long to compute at many epsilons.
  if (!stated.split || stated.lost_a_key() || !names(kPlannedAtStart, stated.method) ||
      !lists_all(stated) || privacy::allocates(planned))
    return {.run = privacy::StatedRun{stated.plan_epsilon(), stated.plan_delta()}};
  return planned;
}

}  // namespace cudp
