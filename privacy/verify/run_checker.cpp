#include "privacy/verify/run_checker.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "privacy/verify/allocated_sample.hpp"
#include "privacy/verify/generator.hpp"
#include "privacy/verify/poisson_sample.hpp"
#include "privacy/verify/statements.hpp"

namespace cudp::verify {
std::uint64_t hash_of(const transcript::State& s) {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto* array : {&s.parameters, &s.moment1, &s.moment2, &s.average}) {
    for (const float x : *array) hash = (hash ^ std::bit_cast<std::uint32_t>(x)) * 1099511628211u;
    hash = (hash ^ array->size()) * 1099511628211u;
  }
  return hash;
}

void move_findings(Findings& findings, Verdict& verdict) {
  verdict.findings = std::move(findings.all);
  verdict.skipped = std::move(findings.skipped);
  verdict.epsilon = findings.epsilon;
}

RunChecker::RunChecker(const Evidence& evidence)
    : certificate_(read_stated_numbers(evidence.certificate)),
      charges_(read_charges(evidence.ledger)),
      settings_(evidence.settings),
      records_(transcript::decode(evidence.transcript)),
      kinds_(kinds_of(certificate_)),
      steps_per_epoch_(steps_per_epoch(certificate_, settings_)),
      numbers_(certificate_, settings_, steps_per_epoch_, findings_) {
  for (const Charge& c : charges_.lines)
    if (c.numbered && c.first == 0 && c.key == 0) {
      totals_an_epoch_ = c.release.count;
      break;
    }
}

Verdict RunChecker::run() {
  Bounds bounds;
  check_certificate(certificate_, &charges_, settings_, kinds_, bounds, findings_);
  for (const transcript::Record& record : records_)
    std::visit([this](const auto& r) { process(r); }, record);
  finish();
  move_findings(findings_, verdict_);
  return std::move(verdict_);
}

void RunChecker::process(const transcript::Begin& b) {
  if (b.generator != certificate_.generator)
    add("noise", "generator: expected " + certificate_.generator + ", found " + b.generator);
  if (certificate_.examples && *certificate_.examples != b.examples)
    add("batch", "examples: expected " + std::to_string(*certificate_.examples) + ", found " +
                     std::to_string(b.examples));
  if (!begin_) check_seed(b);
  const bool same_key = begin_ && b.key == begin_->key;
  if (!keys_.insert(b.key).second && !same_key)
    add("twice", "a process goes on with a key that was lost before");
  if (begin_ && b.key != begin_->key) {
    ++key_;
    key_lines_.reset();
  }
  if (begin_) forget_from(b.step);
  begin_ = b;
  batch_.reset();
  sum_.reset();
  measured_.clear();
  next_step_ = b.step;
  state_.reset();
  line_search_.begin(b.step);
}

void RunChecker::check_seed(const transcript::Begin& b) {
  if (!settings_.has("seed")) return;
  const auto seed = static_cast<std::uint64_t>(std::stoll(settings_.text("seed")));
  std::array<std::uint32_t, 8> from{};
  from[0] = static_cast<std::uint32_t>(seed);
  from[1] = static_cast<std::uint32_t>(seed >> 32);
  const auto block = chacha20_block(from, 0, {0x64656573, 0, 0});  // "seed"
  if (!std::equal(b.key.begin(), b.key.end(), block.begin()))
    add("noise", "the key is not that of the seed");
}

void RunChecker::forget_from(std::uint64_t step) {
  std::erase_if(listed_at_least_, [&](const auto& entry) {
    const auto& [stream, at_step] = entry.first;
    if (stream == kCount) return at_step >= step;
    if (stream == kNormTotal || stream == kLargestNorms)
      return (at_step + 1) * steps_per_epoch_ > step;
    return is_method("dp-agd") && (stream == kNoise || stream == kSelection);
  });
}

void RunChecker::process(const transcript::State& s) {
  state_ = s;
  if (!begin_) return add("update", "parameters before a process has begun");
  if (begin_->step == 0) {
    const auto is_zero = [](const std::vector<float>& m) {
      return std::ranges::all_of(m, [](float x) { return x == 0.0f; });
    };
    if (!is_zero(s.moment1) || !is_zero(s.moment2) ||
        (!s.average.empty() && s.average != s.parameters))
      add("update", "expected moments of 0 and an average of the parameters to begin with");
    return;
  }
  const auto known = states_.find(begin_->step);
  if (known != states_.end() && known->second != hash_of(s))
    add("update", "a process goes on at step " + std::to_string(begin_->step) +
                      " from numbers that no update left");
}

void RunChecker::process(const transcript::Batch& b) {
  if (!begin_) return add("batch", at(b.step) + ": no process has begun");
  batch_ = b;
  if (std::ranges::adjacent_find(b.examples, std::greater_equal<>()) != b.examples.end())
    add("batch", at(b.step) + ": expected each example once, ascending");
  if (!b.examples.empty() && b.examples.back() >= begin_->examples)
    add("batch", at(b.step) + ": expected examples below " + std::to_string(begin_->examples) +
                     ", found " + std::to_string(b.examples.back()));
  if (is_method("dpis")) {
    if (b.threshold != 0) add("batch", at(b.step) + ": expected candidates, found a threshold");
    return skip("candidates of dpis, whose thresholds follow from private norms");
  }
  const bool is_allocated = certificate_.epoch_steps > 0;
  if (const std::uint64_t threshold = is_allocated ? 0 : certificate_.threshold;
      b.threshold != threshold)
    add("batch", at(b.step) + ": expected threshold " + std::to_string(threshold) + ", found " +
                     std::to_string(b.threshold));
  if (b.epoch_steps != certificate_.epoch_steps)
    add("batch", at(b.step) + ": expected epochs of " + std::to_string(certificate_.epoch_steps) +
                     " steps, found " + std::to_string(b.epoch_steps));
  const std::vector<std::uint32_t> drawn =
      is_allocated ? allocated_sample(begin_->generator, begin_->key, certificate_.epoch_steps,
                                      b.step, begin_->examples)
                   : poisson_sample(RandomWords(begin_->generator, begin_->key, kSampling, b.step),
                                    certificate_.threshold, begin_->examples);
  if (certificate_.holdout) return check_drawn(b, drawn);
  if (drawn == b.examples) return;
  const auto [expected, found] = std::ranges::mismatch(drawn, b.examples);
  add("batch", at(b.step) + ": expected " + std::to_string(drawn.size()) + " examples, found " +
                   std::to_string(b.examples.size()) + ", other ones from place " +
                   std::to_string(expected - drawn.begin()));
}

void RunChecker::check_drawn(const transcript::Batch& b, const std::vector<std::uint32_t>& drawn) {
  if (!std::ranges::includes(drawn, b.examples))
    add("batch", at(b.step) + ": expected none but examples that were drawn, found others");
  for (const std::uint32_t i : drawn) {
    const bool trained = std::ranges::binary_search(b.examples, i);
    const auto [known, is_new] = held_.try_emplace(i, !trained);
    if (!is_new && known->second == trained)
      return add("batch",
                 at(b.step) + ": example " + std::to_string(i) + " was trained on and held out");
  }
}

void RunChecker::check_holdout_figure(const transcript::Release& r) {
  const auto& stated = certificate_.holdout;
  if (!stated || stated->releases == 0)
    return add("kinds", at(r) + ": the certificate states nothing about held-out rows");
  expect(r.noise_std == stated->sigma, "noise", at(r) + ", standard deviation", stated->sigma,
         r.noise_std);
  expect(r.sensitivity == 1.0, "sensitivity", at(r) + ", sensitivity", 1.0, r.sensitivity);
  if (is_first(r)) {
    check_noise(r);
    ++holdout_releases_;
  }
  if (holdout_releases_ > stated->releases)
    add("kinds", at(r) + ": the certificate states " + std::to_string(stated->releases) +
                     " figures of held-out rows");
}

void RunChecker::process(const transcript::Release& r) {
  ++verdict_.releases;
  if (!begin_) return add("noise", at(r) + ": no process has begun, so that there is no key");
  if (r.stream == kHoldout) return check_holdout_figure(r);
  const bool first = is_first(r);
  check_kind(r);
  const privacy::Mechanism* const charged = check_charge(r, first);
  if (is_engine_sum(r)) {
    check_engine_sum(r, charged);
    sum_ = r;
  } else if (!r.sums.empty()) {
    check_host_sum(r, charged);
    if (is_method("dp-agd") && r.stream == kNoise && charged != nullptr)
      measured_.push_back({sigma_of(*charged), r.values});
  } else {
    if (charged != nullptr && sigma_of(*charged) > 0.0)
      add("charged", at(r) + ": charged as sums with Gaussian noise");
    if (r.stream == kSelection)
      expect(r.sensitivity == certificate_.loss_sensitivity, "noise", at(r) + ", sensitivity",
             certificate_.loss_sensitivity, r.sensitivity);
    if (is_method("objpert"))
      expect(r.noise_std == certificate_.noise_std, "noise", at(r) + ", standard deviation",
             certificate_.noise_std, r.noise_std);
  }
  if (first) check_noise(r);
  if (first && r.stream == kSelection) check_choice(r, charged);
  if (is_method("dp-agd") && r.stream == kSelection) line_search_.add_choice(r);
}

bool RunChecker::is_first(const transcript::Release& r) {
  const auto [known, is_new] = first_releases_.try_emplace({key_, {r.stream, r.step}}, r);
  if (is_new) return true;
  transcript::Release same = r;
  same.charged = known->second.charged;
  if (known->second != same)
    add("twice", at(r) + ": stream " + std::to_string(r.stream) +
                     " was drawn from before, under the same key, for other sums");
  return false;
}

void RunChecker::check_kind(const transcript::Release& r) {
  const auto wrong = [&] {
    add("kinds", at(r) + ": the certificate's method releases nothing of stream " +
                     std::to_string(r.stream) + " like this");
  };
  if (r.sums.empty()) {
    const bool choice = r.stream == kSelection && kinds_.choices;
    const bool minimum = r.stream == kNoise && is_method("objpert");
    if (!choice && !minimum) return wrong();
    if (minimum) skip("noise in an objective, which no grid rounds");
    return;
  }
  if (r.sums.size() != r.values.size()) add("kinds", at(r) + ": expected as many values as sums");
  if (is_engine_sum(r)) return;
  if (!kinds_.host_streams.contains(r.stream)) return wrong();
  const Listing kind{r.name, r.values.size(), r.sensitivity, r.noise_std, r.grid};
  made_.insert({key_, {r.stream, r.step}, kind});
  listed_at_least_[{r.stream, r.step}] = kind;
}

void RunChecker::finish() {
  if (certificate_.is_finished()) {
    if (sum_) add("update", at(sum_->step) + ": a release that no update followed");
    check_number_of_releases();
    if (certificate_.holdout && holdout_releases_ != certificate_.holdout->releases)
      add("kinds", "figures of held-out rows: expected " +
                       std::to_string(certificate_.holdout->releases) + ", found " +
                       std::to_string(holdout_releases_));
    if (charges_.lost.empty() && verdict_.updates > 0 && next_step_ != certificate_.steps)
      add("kinds", "certificate's steps: expected " + std::to_string(next_step_) +
                       ", as many as updates, found " + std::to_string(certificate_.steps));
  }
  check_listed();
  if (!kinds_.engine && kinds_.known && !is_method("dp-agd"))
    skip("parameters of " + certificate_.method + ", which no optimizer updates");
}

}  // namespace cudp::verify
