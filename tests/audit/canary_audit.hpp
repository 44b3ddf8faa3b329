#pragma once
// Audits by many canaries at once: a training of a method, network and clipping as they are, on a
// few examples and some hundred canaries (runtime/device/audit_tap.hpp), each the only one that
// says anything of its parameter. So a step gives hundreds of samples of what one example adds to a
// sum, and thousands of the noise on it, which are held against what the ledger was charged for.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/random_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/methods/dpsgd_quantile.hpp"
#include "runtime/methods/method.hpp"
#include "runtime/methods/plan.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/forwarding_engine.hpp"
#include "tests/support/method_cases.hpp"
#include "tests/support/test_books.hpp"

namespace cudp::audit {

/// A mechanism that is not the one that is certified, by factors.
struct Mutation {
  const char* name = "none";
  double noise = 1.0;
  double clip = 1.0;     ///< what an example may add
  double rate = 1.0;     ///< how often it is sampled
  bool repeats = false;  ///< every step has the noise of the first
};

/// What one step showed, in units of the most that an example may add.
struct StepSeen {
  std::vector<double> canaries;  ///< noisy sums along the canaries' parameters
  std::vector<double> others;    ///< and along all others: noise alone
  double q = 0.0;                ///< what the ledger was charged for
  double sigma = 0.0;
};

/// The recipe of the mutation.
inline StepRecipe mutated(StepRecipe recipe, const Mutation& mutation) {
  if (auto* const poisson = std::get_if<Poisson>(&recipe.draw))
    poisson->threshold = std::min(
        std::uint64_t{1} << 32,
        static_cast<std::uint64_t>(static_cast<double>(poisson->threshold) * mutation.rate));
  else  // n / |g| of a gradient is accepted, not clipped
    std::get<Candidates>(recipe.draw).rule.rate *= mutation.rate * mutation.clip;
  return recipe;
}

/// An engine as it is but for the mutation, whose released sums are seen without what ordinary
/// examples add to them.
class SeenEngine final : public ForwardingEngine {
 public:
  using See = std::function<void(std::vector<double> difference)>;

  SeenEngine(const Network& network, const EngineSettings& settings, const Mutation& mutation,
             std::vector<std::uint32_t> canaries, const See& see)
      : ForwardingEngine(make_seen(network, settings, mutation, std::move(canaries), see)),
        mutation_(mutation) {}

  void run(const StepRecipe& recipe, std::uint64_t first,
           std::span<const StepScalars> scalars) override {
    for (std::size_t i = 0; i < scalars.size(); ++i) {
      StepScalars s = scalars[i];
      s.noise_std = static_cast<float>(static_cast<double>(s.noise_std) * mutation_.noise);
      s.clip_norm *= static_cast<float>(mutation_.clip);
      ForwardingEngine::run(mutated(recipe, mutation_), mutation_.repeats ? 0 : first + i, {&s, 1});
    }
  }
  /// By run(), which has the mutation.
  FollowedSteps run_following(const StepRecipe& recipe, std::uint64_t first,
                              std::span<const StepScalars> scalars, const ClipRule& rule,
                              float clip, std::span<const std::int64_t> count_noise) override {
    return Engine::run_following(recipe, first, scalars, rule, clip, count_noise);
  }

 private:
  static std::unique_ptr<Engine> make_seen(const Network& network, EngineSettings settings,
                                           const Mutation& mutation,
                                           std::vector<std::uint32_t> canaries, const See& see) {
    settings.recipe = mutated(settings.recipe, mutation);
    auto tap = std::make_shared<AuditTap>();
    tap->canaries = std::move(canaries);
    tap->released = [see](const ReleasedSum& r) {
      std::vector<double> difference(r.sum.begin(), r.sum.end());
      for (std::size_t j = 0; j < difference.size(); ++j)
        difference[j] -= static_cast<double>(r.ordinary[j]);
      see(std::move(difference));
    };
    settings.audit = std::move(tap);
    return make_cpu_engine(network, settings);
  }

  Mutation mutation_;
};

/// A training to be audited.
struct CanaryCase {
  std::string name;
  cases::Case model;
  TrainConfig config;
  std::size_t canaries = 600;
};

inline constexpr std::size_t kOrdinary = 8;

/// Trains the case under a seed's key; `interrupt`: from that step on as a run does that is
/// resumed.
class CanaryTraining {
 public:
  CanaryTraining(const CanaryCase& c, const Mutation& mutation, std::uint64_t seed)
      : case_(c),
        network_(network_of(c)),
        data_(cases::examples_for(c.model, kOrdinary + c.canaries)),
        backend_(choose_backend(Device::cpu)),
        key_(key_from_seed(seed)) {
    for (std::size_t i = 0; i < c.canaries; ++i)  // spread over all layers
      canaries_.push_back(static_cast<std::uint32_t>(i * network_.parameter_count / c.canaries));
    backend_.make_engine = [this, mutation](const Network& network,
                                            const EngineSettings& settings) {
      return std::make_unique<SeenEngine>(network, settings, mutation, canaries_,
                                          [this](std::vector<double> x) { see(std::move(x)); });
    };
    method_ = make_method();
    privacy::Ledger ledger;
    if (const auto limit = method_->filter()) ledger.limit(*limit);
    budget_.emplace(std::move(ledger), [](const privacy::Ledger&) {});
    method_->start(inputs(), *budget_);
  }

  /// One step; false where there is none left.
  bool step() {
    if (at_ == method_->steps() || method_->authorise(*budget_, at_, at_ + 1) == at_) return false;
    most_ = largest_contribution();
    method_->train(at_, at_ + 1);
    ++at_;
    return true;
  }

  /// As a run that was killed goes on from its checkpoint. from: the step that it believes it is
  /// at.
  void resume(std::uint64_t from) {
    const MethodState state = method_->state();
    method_ = make_method();
    method_->restore(inputs(), state);
    at_ = from;
  }
  /// The same where its key was lost; told: whether the budget is told so.
  void resume_with_key(std::uint64_t from, std::uint64_t seed, bool told) {
    key_ = key_from_seed(seed);
    resume(from);
    if (told) method_->fresh_key(*budget_, from);
  }

  std::uint64_t at() const { return at_; }

  /// The releases of steps that were paid for.
  std::vector<privacy::PoissonGaussian> charged() const {
    std::vector<privacy::PoissonGaussian> all;
    for (const privacy::Release& release : budget_->ledger().releases())
      if (const auto* step = std::get_if<privacy::PoissonGaussian>(&release.mechanism))
        all.insert(all.end(), release.count, *step);
    return all;
  }

  /// Everything that was seen, with what was charged for the step.
  std::vector<StepSeen> seen() const {
    const std::vector<privacy::PoissonGaussian> charged = this->charged();
    std::vector<StepSeen> all;
    for (const auto& [step, sums] : seen_) {
      all.push_back(sums);
      all.back().q = charged.at(step).q;
      all.back().sigma = charged.at(step).sigma * gradient_share();
    }
    return all;
  }

 private:
  static Network network_of(const CanaryCase& c) {
    const std::string_view text = builtin_model(c.model.model);
    return build_network(parse_model(text.empty() ? c.model.model : text, c.model.name,
                                     c.model.classes, c.config.activation),
                         c.model.input, c.model.classes);
  }
  std::unique_ptr<Method> make_method() const {
    const TrainingSize size{static_cast<double>(data_.size()), 0.0};
    return method_entry(case_.config.method)
        .make(cases::context_of(case_.config, network_, size, backend_.arithmetic(network_)));
  }
  /// Of a process that begins now.
  TrainingInputs inputs() {
    gate_.emplace(Generator::chacha20, key_, all_paid());
    return {data_, backend_, key_, *gate_};
  }

  /// Of an example to the sum of the next step.
  double largest_contribution() const {
    const std::string& method = case_.config.method;
    if (method == "dpis" || method == "adaclip") return 1.0;
    const MethodState state = method_->state();
    const double c = state.numbers.contains("clip_norm")
                         ? state.numbers.at("clip_norm").get<double>()
                         : case_.config.clip_norm;
    return case_.config.clipping == Clipping::per_layer
               ? c / std::sqrt(static_cast<double>(network_.groups))
               : c;
  }
  /// The noise on sums of gradients over what was charged: dpsgd-quantile releases a count beside
  /// them, and of clipping by layers a canary has but its layer's part.
  double gradient_share() const {
    double share = 1.0;
    if (case_.config.method == "dpsgd-quantile")
      share /= std::sqrt(1.0 - case_.config.of<QuantileOptions>().noise_share);
    if (case_.config.clipping == Clipping::per_layer)
      share *= std::sqrt(static_cast<double>(network_.groups));
    return share;
  }

  void see(std::vector<double> x) {
    StepSeen s;
    std::size_t next = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const bool canary = next < canaries_.size() && canaries_[next] == j;
      next += canary ? 1 : 0;
      (canary ? s.canaries : s.others).push_back(x[j] / most_);
    }
    seen_.emplace_back(at_, std::move(s));
  }

  CanaryCase case_;
  Network network_;
  Dataset data_;
  Backend backend_;
  RandomKey key_;
  std::optional<Gate> gate_;
  std::vector<std::uint32_t> canaries_;
  std::unique_ptr<Method> method_;
  std::optional<PrivacyBudget> budget_;
  std::uint64_t at_ = 0;
  double most_ = 1.0;
  std::vector<std::pair<std::uint64_t, StepSeen>> seen_;  ///< with the step's number
};

/// How far what was seen is from what is certified, towards less privacy, each a standard normal
/// number or less where it is as certified.
struct Evidence {
  double noise = 0.0;         ///< too little
  double contribution = 0.0;  ///< examples add too much, or too often
  double repeated = 0.0;      ///< two steps have noise in common, over all pairs

  /// Each of the three is above 5.3 with probability 6e-8, `repeated` for each pair and either
  /// sign: with 200 pairs 1e-6 in all is at 6.1.
  bool convicts() const { return noise > 5.3 || contribution > 5.3 || repeated > 6.1; }
};

inline Evidence evidence_of(const std::vector<StepSeen>& seen) {
  Evidence e;
  double n = 0.0;
  double squares = 0.0;
  double excess = 0.0;
  double variance = 0.0;
  for (const StepSeen& s : seen) {
    for (const double x : s.others) squares += x * x / (s.sigma * s.sigma);
    n += static_cast<double>(s.others.size());
    // Weighed by what a share more would be in units of the noise.
    const double weight = s.q / (s.sigma * s.sigma + s.q * (1.0 - s.q));
    for (const double x : s.canaries) excess += weight * (x - s.q);
    variance += static_cast<double>(s.canaries.size()) * weight * s.q;
  }
  e.noise = std::sqrt(2.0 * n - 1.0) - std::sqrt(2.0 * squares);  // Fisher's
  e.contribution = excess / std::sqrt(variance);
  for (std::size_t a = 0; a < seen.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      double product = 0.0;
      for (std::size_t j = 0; j < seen[a].others.size(); ++j)
        product += seen[a].others[j] * seen[b].others[j];
      product /=
          seen[a].sigma * seen[b].sigma * std::sqrt(static_cast<double>(seen[a].others.size()));
      e.repeated = std::max(e.repeated, std::fabs(product));
    }
  return e;
}

inline Evidence audit(const CanaryCase& c, const Mutation& mutation, std::uint64_t seed) {
  CanaryTraining training(c, mutation, seed);
  while (training.step()) {
  }
  return evidence_of(training.seen());
}

/// Of the honest and of every mutated training, how many are run: one in the tests, 100 to measure
/// power (scripts/check.sh audit).
inline int seeds() {
  const char* const asked = std::getenv("CUDP_AUDIT_SEEDS");
  return asked != nullptr ? std::atoi(asked) : 1;
}

}  // namespace cudp::audit
