#include "runtime/methods/plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

namespace cudp {

using Json = nlohmann::ordered_json;

double PrivacyPlan::noise_multiplier_at(std::uint64_t step) const {
  const auto span = std::ranges::upper_bound(noise, step, {}, &NoiseSpan::until);
  return span == noise.end() ? noise_multiplier : noise_multiplier * span->scale;
}

std::vector<privacy::Release> step_releases(const PrivacyPlan& plan, std::uint64_t first,
                                            std::uint64_t last) {
  std::vector<privacy::Release> sums;
  auto span = std::ranges::upper_bound(plan.noise, first, {}, &NoiseSpan::until);
  while (first < last) {
    const std::uint64_t end = span == plan.noise.end() ? last : std::min(last, span->until);
    sums.push_back(
        {privacy::sampled_gaussian_mechanism(plan.sampling_rate(), plan.noise_multiplier_at(first)),
         end - first});
    first = end;
    if (span != plan.noise.end()) ++span;
  }
  return sums;
}

std::vector<privacy::Release> releases(const PrivacyPlan& plan, std::uint64_t steps) {
  std::vector<privacy::Release> all = plan.before;
  if (steps > 0 && plan.epoch_releases > 0)
    all.push_back({privacy::Gaussian{plan.epoch_noise}, plan.epoch_releases});
  const std::vector<privacy::Release> sums = step_releases(plan, 0, steps);
  all.insert(all.end(), sums.begin(), sums.end());
  return all;
}

privacy::AccountantOptions accountant_options(const PrivacyPlan& plan) {
  privacy::AccountantOptions options;
  options.kind = plan.accountant;
  if (plan.order > 0.0) {
    options.kind = privacy::AccountantKind::rdp;
    options.orders = {plan.order};
  }
  return options;
}

privacy::PrivacyBound guarantee(const PrivacyPlan& plan, std::vector<privacy::Release> releases,
                                double coarseness) {
  privacy::AccountantOptions options = accountant_options(plan);
  options.coarseness = coarseness;
  privacy::PrivacyBound bound =
      privacy::Accountant({.releases = std::move(releases)}, std::move(options))
          .epsilon(plan.delta - plan.failure);
  bound.delta = plan.delta;
  return bound;
}

Json encode_plan(const PrivacyPlan& p) {
  Json noise = Json::array();
  for (const NoiseSpan& span : p.noise) noise.push_back({span.until, span.scale});
  return {{"sampling_threshold", p.sampling_threshold},
          {"expected_batch", p.expected_batch},
          {"largest_sum", p.largest_sum},
          {"steps", p.steps},
          {"clip_norm", p.clip_norm},
          {"sensitivity", p.sensitivity},
          {"noise_multiplier", p.noise_multiplier},
          {"noise", noise},
          {"epoch_releases", p.epoch_releases},
          {"epoch_noise", p.epoch_noise},
          {"delta", p.delta},
          {"failure", p.failure},
          {"order", p.order},
          {"accountant", privacy::name(p.accountant)}};
}

PrivacyPlan decode_plan(const Json& j) {
  PrivacyPlan p;
  p.sampling_threshold = j.at("sampling_threshold").get<std::uint64_t>();
  p.expected_batch = j.at("expected_batch").get<double>();
  p.largest_sum = j.at("largest_sum").get<std::uint64_t>();
  p.steps = j.at("steps").get<std::uint64_t>();
  p.clip_norm = j.at("clip_norm").get<double>();
  p.sensitivity = j.at("sensitivity").get<double>();
  p.noise_multiplier = j.at("noise_multiplier").get<double>();
  for (const Json& span : j.at("noise"))
    p.noise.push_back({span.at(0).get<std::uint64_t>(), span.at(1).get<double>()});
  p.epoch_releases = j.at("epoch_releases").get<std::uint64_t>();
  p.epoch_noise = j.at("epoch_noise").get<double>();
  p.delta = j.at("delta").get<double>();
  p.failure = j.at("failure").get<double>();
  p.order = j.at("order").get<double>();
  for (const auto a : {privacy::AccountantKind::pld, privacy::AccountantKind::rdp,
                       privacy::AccountantKind::best, privacy::AccountantKind::advanced})
    if (j.at("accountant") == privacy::name(a)) {
      p.accountant = a;
      return p;
    }
  throw std::invalid_argument("an accountant that is not known: " + j.at("accountant").dump());
}

}  // namespace cudp
