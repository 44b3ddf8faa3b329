#include "runtime/run/guarded_certificate.hpp"

#include <variant>
#include <vector>

#include "runtime/base/build_info.hpp"
#include "runtime/config/options.hpp"
#include "runtime/device/linear_sensitivity.hpp"

namespace cudp {
namespace {

using Json = nlohmann::ordered_json;

/// Equal releases together, in the order of the first of each.
std::vector<privacy::Step> by_mechanism(const privacy::Ledger& ledger) {
  std::vector<privacy::Step> all;
  for (const privacy::Step& step : ledger.steps()) {
    bool known = false;
    for (privacy::Step& earlier : all) {
      if (earlier.mechanism != step.mechanism) continue;
      earlier.count += step.count;
      known = true;
      break;
    }
    if (!known) all.push_back(step);
  }
  return all;
}

Json release_of(const privacy::Step& step) {
  Json j{{"mechanism", privacy::name(step.mechanism)}};
  if (const auto* gaussian = std::get_if<privacy::Gaussian>(&step.mechanism))
    j["sigma"] = gaussian->sigma;
  if (const auto* selection = std::get_if<privacy::BoundedRange>(&step.mechanism))
    j["epsilon"] = selection->epsilon;
  if (const auto* pure = std::get_if<privacy::ApproximateDp>(&step.mechanism))
    j["epsilon"] = pure->epsilon;
  j["count"] = step.count;
  return j;
}

}  // namespace

Json make_guarded_certificate(const CertificateFacts& f, const privacy::Filter& filter,
                              const DpAgdSettings& settings, const Network& network,
                              std::uint64_t iterations) {
  const privacy::Budget& budget = filter.budget();
  const bool gumbel = settings.selection == SelectionNoise::gumbel;
  Json j = begin_certificate(f);
  j["epsilon"] = budget.epsilon;
  j["delta"] = budget.delta;
  j["neighbouring_relation"] = "add or remove one training example";
  j["mechanism"] = "Gaussian sums and noisy minima chosen adaptively behind a zCDP filter (DP-AGD)";
  j["method"] = "dp-agd";
  j["sampling"] = settings.threshold > 0 ? "poisson, counted as all examples" : "all examples";
  if (settings.threshold > 0) j["sampling_threshold"] = settings.threshold;
  j["C"] = settings.gradient_clip;
  j["loss_clip"] = settings.loss_clip;
  // C and what rounding can add to it
  j["sensitivity"] = linear_gradient_sensitivity(
      settings.gradient_clip, static_cast<int>(network.parameter_count), settings.most_examples);
  j["loss_sensitivity"] = linear_loss_sensitivity(settings.loss_clip, settings.most_examples);
  j["selection_noise"] = gumbel ? "gumbel" : "laplace";
  j["steps"] = iterations;
  j["releases"] = Json::array();
  for (const privacy::Step& step : by_mechanism(f.ledger))
    j["releases"].push_back(release_of(step));

  j["filter"] = {{"kind", "zcdp"},
                 {"rho", filter.limit()},
                 {"rho_spent", filter.limit() * (1.0 - filter.remaining())},
                 {"theorem", "Whitehouse, Ramdas, Rogers, Wu 2023, Theorem 1"}};
  j["accountant"] = "zcdp";
  j["accountant_version"] = build_info().version;
  j["conversion"] = "Canonne, Kamath, Steinke 2020, Proposition 12";
  if (f.config.conversion == Conversion::classical)
    j["budget_conversion"] = "Bun, Steinke 2016, Proposition 1.3";
  add_circumstances(j, f);
  return j;
}

}  // namespace cudp
