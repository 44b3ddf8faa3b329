#include "runtime/methods/privgene.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "privacy/rdp/zcdp.hpp"
#include "runtime/base/random_numbers.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/device/linear_sensitivity.hpp"
#include "runtime/methods/noisy_min.hpp"
#include "runtime/methods/plan.hpp"

namespace cudp {
namespace {

using Models = std::vector<std::vector<float>>;

/// Uniform random numbers from a random stream, drawn one after another.
class Dice {
 public:
  Dice(const RandomStream& stream, std::size_t count) : words_(random_words(stream, count)) {}
  /// Returns a uniform number in [-1, 1).
  float symmetric() { return static_cast<float>(next()) * 0x1p-31f - 1.0f; }
  /// Returns a uniform whole number from 0 to n - 1.
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(next()) * n >> 32);
  }

 private:
  std::uint32_t next() { return words_.at(used_++); }
  std::vector<std::uint32_t> words_;
  std::size_t used_ = 0;
};

Models first_generation(std::size_t count, std::size_t d, const RandomStream& stream) {
  Dice dice(stream, count * d);
  Models models(count, std::vector<float>(d));
  for (std::vector<float>& w : models)
    for (float& v : w) v = dice.symmetric();
  return models;
}

/// Returns the next generation of `count` models: the parents, followed by their children. A child
/// takes the coordinates before a random index from one parent and the others from a second parent
/// (crossover); then one coordinate is changed by up to `reach` (mutation). The random numbers come
/// from `stream`.
Models next_generation(Models parents, std::size_t count, float reach, const RandomStream& stream) {
  Dice dice(stream, 5 * count);
  const std::size_t families = parents.size();
  Models models = std::move(parents);
  while (models.size() < count) {
    const std::vector<float>& other = models[dice.below(families)];
    std::vector<float> child = models[dice.below(families)];
    const std::size_t place = dice.below(child.size());
    std::copy(other.begin() + static_cast<std::ptrdiff_t>(place), other.end(),
              child.begin() + static_cast<std::ptrdiff_t>(place));
    const std::size_t moved = dice.below(child.size());
    child[moved] += reach * dice.symmetric();
    models.push_back(std::move(child));
  }
  return models;
}

}  // namespace

PrivGene::PrivGene(const TrainConfig& config, const LinearProblem& facts)
    : LinearMethod(config, facts),
      loss_(facts.loss),
      delta_(*config.delta * (1.0 - kFailureShare)),
      loss_clip_(config.of<LinearOptions>().loss_clip),
      max_examples_(facts.max_examples),
      rho_before_(facts.mu_before > 0.0 ? privacy::zcdp_of_gaussian(1.0 / facts.mu_before) : 0.0),
      candidates_(static_cast<std::size_t>(config.of<PrivGeneOptions>().candidates)),
      parents_(static_cast<std::size_t>(config.of<PrivGeneOptions>().parents)) {
  const auto generations = static_cast<std::size_t>(config.of<PrivGeneOptions>().generations);
  // Number of generations by the paper's rule: c N epsilon / m', where c = 1.25e-3, N is the number
  // of examples and m' the number of parents.
  const double rule = 1.25e-3 * facts.examples * *config.epsilon / static_cast<double>(parents_);
  generations_ = generations > 0 ? generations
                                 : static_cast<std::size_t>(std::clamp(std::ceil(rule), 8.0, 1e6));
  choices_ = (generations_ - 1) * parents_ + 1;
  // Total zCDP cost rho of all choices, for neighbours that differ by one example. If a unit of
  // privacy has k examples, the privacy loss of a choice has a k times as large range, which costs
  // k^2 times as much rho.
  const double rho =
      privacy::zcdp_for(*config.epsilon, delta_) / (facts.unit_rows * facts.unit_rows) -
      rho_before_;
  if (!(rho > 0.0)) throw std::domain_error("the releases before training take the whole budget");
  selection_epsilon_ =
      noisy_min_epsilon(rho / static_cast<double>(choices_) * (1.0 - 1e-9), SelectionNoise::gumbel);
}

std::vector<privacy::Release> PrivGene::releases() const {
  return {{.mechanism = noisy_min_mechanism(selection_epsilon_, SelectionNoise::gumbel),
           .count = choices_}};
}

double PrivGene::epsilon_of(double rows) const {
  const double rho = static_cast<double>(choices_) * selection_epsilon_ * selection_epsilon_ / 8.0;
  return privacy::epsilon_from_zcdp(rows * rows * (rho + rho_before_) * (1.0 + 1e-12), delta_);
}

std::vector<float> PrivGene::fit(const LinearTask& task) const {
  const auto engine = make_cpu_linear_engine(task.train, loss_, max_examples_, task.threads);
  const auto d = static_cast<std::size_t>(engine->dimension());
  // Sets the engine's current weights to 0. A step of size -1 along w then leads to the weights w,
  // so clipped_losses(w, step) returns the losses of model w.
  engine->clipped_gradient_sum(std::vector<float>(d, 0.0f), 1.0);
  const std::vector<float> step = {-1.0f};
  const auto stream = [&](Stream purpose, std::uint64_t generation) {
    return RandomStream{task.generator, task.key, purpose, generation};
  };

  pass_gate(task.gate);
  Models models = first_generation(candidates_, d, stream(Stream::initial_weights, 0));
  for (std::uint64_t generation = 1;; ++generation) {
    std::vector<double> losses;
    for (const std::vector<float>& w : models)
      losses.push_back(engine->clipped_losses(w, step, loss_clip_)[0]);
    const bool last = generation == generations_;
    Models chosen;
    for (const std::size_t i :
         noisy_smallest(losses, last ? 1 : parents_,
                        linear_loss_sensitivity(loss_clip_, max_examples_), selection_epsilon_,
                        stream(Stream::selection, generation), task.gate.release_observer()))
      chosen.push_back(models[i]);
    if (last) return chosen.front();
    const float reach =
        1.0f - static_cast<float>(generation - 1) / static_cast<float>(generations_);
    models = next_generation(std::move(chosen), candidates_, reach,
                             stream(Stream::initial_weights, generation));
  }
}

void PrivGene::describe_mechanism(privacy::Promise& promise,
                                  std::vector<privacy::Release> releases) const {
  promise.mechanism = "exponential mechanism on sums of clipped losses, once a parent (PrivGene)";
  promise.how =
      privacy::ChosenParents{.loss_clip = loss_clip_,
                             .loss_sensitivity = linear_loss_sensitivity(loss_clip_, max_examples_),
                             .selection_epsilon = selection_epsilon_,
                             .generations = generations_,
                             .candidates = candidates_,
                             .parents = parents_,
                             .releases = std::move(releases)};
}

MethodEntry privgene_method() {
  using namespace option_rows;
  using Options = PrivGeneOptions;
  MethodEntry entry = linear_method_entry();
  entry.name = "privgene";
  entry.options = {
      integer("generations", "N", &Options::generations, kCountOrZero,
              "privgene: number of generations; 0: examples x epsilon / (800 parents), at least 8"),
      integer("candidates", "N", &Options::candidates, kCount, "privgene: models per generation"),
      integer("parents", "N", &Options::parents, kCount, "privgene: parents per generation")};
  entry.uses = {"loss-clip"};
  entry.complete = [](TrainConfig& c) {
    if (c.of<Options>().parents > c.of<Options>().candidates)
      throw InputError("--parents: expected at most candidates");
  };
  entry.make = make_linear_method<PrivGene>;
  return entry;
}

}  // namespace cudp
