#include "runtime/methods/plan.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"

namespace cudp {

using Json = nlohmann::ordered_json;

double PrivacyPlan::noise_multiplier_at(std::uint64_t step) const {
  const auto span = std::ranges::upper_bound(noise, step, {}, &NoiseSpan::until);
  return span == noise.end() ? noise_multiplier : noise_multiplier * span->scale;
}

Draw PrivacyPlan::draw() const {
  if (epoch_steps > 0) return Allocation{epoch_steps};
  return Poisson{sampling_threshold};
}

void check_allocation(const PrivacyPlan& plan) {
  if (plan.epoch_steps > 0 && !plan.noise.empty())
    throw InputError(
        "--sampling: expected poisson if the noise differs from step to step, found allocation; "
        "with method adp-sgd type --adp-constant-noise");
}

namespace {

/// Returns the releases for random allocation: one for each epoch that has steps in first <= t <
/// last.
std::vector<privacy::Release> allocated_releases(const PrivacyPlan& plan, std::uint64_t first,
                                                 std::uint64_t last) {
  if (first >= last) return {};
  return {{privacy::AllocatedGaussian{plan.epoch_steps, plan.noise_multiplier},
           plan.releases_until(last) - plan.release_of(first)}};
}

}  // namespace

std::vector<privacy::Release> step_releases(const PrivacyPlan& plan, std::uint64_t first,
                                            std::uint64_t last) {
  if (plan.epoch_steps > 0) return allocated_releases(plan, first, last);
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
  const privacy::Composition composition{.releases = std::move(releases), .group = plan.group};
  privacy::PrivacyBound bound = epsilon_bound(plan, composition, options);
  bound.delta = plan.delta;
  return bound;
}

privacy::PrivacyBound epsilon_bound(const PrivacyPlan& plan,
                                    const privacy::Composition& composition,
                                    const privacy::AccountantOptions& options) {
  const double delta = plan.delta - plan.failure;
  privacy::AccountantMemo* const memo = plan.memo.results.get();
  // A run computes each coarse bound only once. So coarse bounds are cached only if several runs
  // share the cache.
  const bool is_cached =
      memo != nullptr && (options.coarseness == 1.0 || memo->serves_several_runs());
  return is_cached ? memo->epsilon(composition, options, delta)
                   : privacy::Accountant(composition, options).epsilon(delta);
}

namespace {

Json encoded(const std::vector<NoiseSpan>& spans) {
  Json list = Json::array();
  for (const NoiseSpan& span : spans) list.push_back({span.until, span.scale});
  return list;
}
Json encoded(privacy::AccountantKind kind) { return privacy::name(kind); }
template <class Number>
Json encoded(Number number) {
  return number;
}

void decode(const Json& list, std::vector<NoiseSpan>& spans) {
  for (const Json& span : list)
    spans.push_back({span.at(0).get<std::uint64_t>(), span.at(1).get<double>()});
}
void decode(const Json& name, privacy::AccountantKind& kind) {
  for (const auto known : {privacy::AccountantKind::pld, privacy::AccountantKind::rdp,
                           privacy::AccountantKind::best, privacy::AccountantKind::advanced}) {
    kind = known;
    if (name == privacy::name(known)) return;
  }
  throw std::invalid_argument("an accountant that is not known: " + name.dump());
}
template <class Number>
void decode(const Json& json, Number& number) {
  number = json.get<Number>();
}

/// Calls visit(name, member) for those members of a privacy plan that are stored in checkpoints.
template <class Plan, class Visit>
void visit_parts(Plan& p, const Visit& visit) {
  visit("sampling_threshold", p.sampling_threshold);
  visit("expected_batch", p.expected_batch);
  visit("steps", p.steps);
  visit("clip_norm", p.clip_norm);
  visit("sensitivity", p.sensitivity);
  visit("noise_multiplier", p.noise_multiplier);
  visit("noise", p.noise);
  visit("epoch_releases", p.epoch_releases);
  visit("epoch_noise", p.epoch_noise);
  visit("delta", p.delta);
  visit("failure", p.failure);
  visit("group", p.group);
  visit("order", p.order);
  visit("accountant", p.accountant);
}

}  // namespace

std::uint64_t poisson_threshold(double batch, double n) {
  return static_cast<std::uint64_t>(std::ceil(batch / n * 0x1p32));
}

Json encode_plan(const PrivacyPlan& plan) {
  Json json;
  visit_parts(plan, [&](const char* name, const auto& part) { json[name] = encoded(part); });
  if (plan.epoch_steps > 0) json["epoch_steps"] = plan.epoch_steps;
  return json;
}

PrivacyPlan decode_plan(const Json& json) {
  PrivacyPlan plan;
  visit_parts(plan, [&](const char* name, auto& part) { decode(json.at(name), part); });
  plan.epoch_steps = json.value("epoch_steps", std::uint64_t{0});
  return plan;
}

}  // namespace cudp
