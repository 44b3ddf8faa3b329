#include "runtime/tune/certify.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "privacy/verify/stated_numbers.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/results/run_spending.hpp"
#include "runtime/training/certify.hpp"

namespace cudp {
namespace {

using Tuning = privacy::Certificate::Tuning;

privacy::RunSpending stated(double epsilon, double delta) {
  return {.run = privacy::StatedRun{epsilon, delta}};
}

/// Returns the privacy cost with which a candidate's training counts. If its planned certificate
/// lists all releases, and they are fixed in advance and can be added up with others, these count.
/// Otherwise the candidate's whole budget (epsilon, delta) counts.
privacy::RunSpending spending_of_training(const PlannedSpending& s, double epsilon, double delta) {
  privacy::RunSpending whole = stated(std::fmax(s.epsilon, epsilon), std::fmax(s.delta, delta));
  if (s.certificate.empty()) return whole;
  const auto json = nlohmann::json::parse(s.certificate);
  const verify::StatedNumbers numbers = verify::read_stated_numbers(s.certificate);
  // split: the budget is divided between a noisy number of examples and the training; the former is
  // counted elsewhere, once. order_fixed: the method dpis, whose releases are admitted by a filter
  // that adds Renyi divergences of a fixed order.
  if (numbers.split || numbers.order_fixed) return spending_given_count(numbers);
  if (numbers.releases.empty() && !json.contains("filter")) return whole;
  privacy::RunSpending spending = spending_of(json, numbers, "a candidate");
  // Releases that are chosen adaptively, and random allocation, count with the whole budget. Random
  // allocation has no Renyi divergence, and its privacy loss distribution takes long to compute at
  // many epsilons.
  const bool has_curves =
      !std::holds_alternative<privacy::ChosenRun>(spending.run) && !privacy::allocates(spending);
  return has_curves ? spending : whole;
}

/// Returns the privacy cost with which the score of a candidate counts: that of the noisy test
/// results of held-out rows if they have the same noise for all candidates, otherwise the
/// candidate's whole budget (epsilon, delta).
privacy::RunSpending spending_of_score(const std::vector<PlannedSpending>& spendings,
                                       double epsilon, double delta) {
  privacy::PlannedRun scores;
  for (const PlannedSpending& s : spendings) {
    if (s.certificate.empty()) return stated(epsilon, delta);
    const auto held = verify::read_stated_numbers(s.certificate).holdout;
    if (!held || held->releases == 0) return stated(epsilon, delta);
    const privacy::Release release{privacy::Gaussian{held->sigma}, held->releases};
    if (scores.releases.empty() || release != scores.releases.front())
      scores.releases.push_back(release);
  }
  if (scores.releases.size() != 1) return stated(epsilon, delta);
  return {.run = scores};
}

/// Returns a text with those fields of a planned certificate on which its privacy cost depends.
/// Plans with equal texts have equal costs.
std::string key_of(const PlannedSpending& s) {
  if (s.certificate.empty()) return {};
  const auto json = nlohmann::json::parse(s.certificate);
  std::string key;
  for (const char* const name :
       {"method", "releases", "filter", "mechanism", "noise_over_time", "sampling_threshold",
        "noise_multiplier", "steps_planned", "delta_for_rounding", "order", "after_size_release"})
    if (json.contains(name)) key += json[name].dump() + "\n";
  return key;
}

}  // namespace

std::vector<Tuning::Part> parts_of_selection(const std::vector<PlannedSpending>& spendings,
                                             ScoreRows score, double epsilon, double delta) {
  std::vector<Tuning::Part> parts;
  std::map<std::string, std::size_t> known;
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < spendings.size(); ++i) {
    all.push_back(i);
    const auto [at, is_new] = known.emplace(key_of(spendings[i]), parts.size());
    if (is_new)
      parts.push_back({.of_score = false,
                       .candidates = {},
                       .spending = spending_of_training(spendings[i], epsilon, delta)});
    parts[at->second].candidates.push_back(i);
  }
  if (score == ScoreRows::held_out)
    parts.push_back({.of_score = true,
                     .candidates = all,
                     .spending = spending_of_score(spendings, epsilon, delta)});
  return parts;
}

std::string certificate_of_charge(const ChargedTuning& charged) {
  privacy::Certificate c;
  c.status = privacy::Certificate::Status::not_finished;
  c.not_for_release = {
      "not finished: this is a tuning in progress or cut short; epsilon and delta are those of all "
      "of it, which count as spent"};
  c.epsilon = charged.epsilon;
  c.delta = charged.delta;
  c.promise = {.epsilon = charged.epsilon,
               .delta = charged.delta,
               .method = "tune",
               .mechanism = "trainings of a tuning, of which one will be released",
               .how = privacy::CountedExamples{}};
  if (!charged.data.unit.empty())
    c.unit = {.column = charged.data.unit, .max_rows = charged.data.unit_rows};
  c.dataset = charged.data.name;
  c.rng = charged.rng;
  c.seeded = charged.is_seeded;
  c.test_set = privacy::Certificate::TestSet::none;
  const BuildInfo build = build_info();
  c.build = {
      .version = build.version, .commit = build.commit, .compiler = build.compiler, .backend = {}};
  return privacy::to_text(c);
}

std::string tuned_certificate(const std::string& trained, Tuning tuning, double delta) {
  privacy::Certificate c = privacy::read_certificate(trained);
  c.select(std::move(tuning), delta);
  c.warnings = privacy_warnings(c.size.value, c.epsilon, c.delta);
  return privacy::to_text(c);
}

}  // namespace cudp
