#include "privacy/verify/stated_numbers.hpp"

#include <algorithm>
#include <variant>

namespace cudp::verify {
namespace {

/// Copies a certificate's numbers about the training's mechanism (Promise::how) into StatedNumbers.
/// A visitor of the variant, with an overload for each kind of mechanism.
class Copy {
 public:
  explicit Copy(StatedNumbers& certificate) : c(certificate) {}

  void operator()(const privacy::NoisySums& s) const {
    c.sampling = s.sampling;
    c.q = s.q;
    c.threshold = s.sampling_threshold;
    c.epoch_steps = s.epoch_steps;
    c.sigma = s.sigma;
    c.clip = s.clip_norm;
    c.sensitivity = s.sensitivity;
    c.noise_std = s.noise_std;
    c.grid = s.grid;
    c.expected_batch = s.expected_batch;
    c.steps = s.steps;
    c.steps_planned = s.steps_planned;
    c.releases = s.releases;
    c.accountant = s.accountant;
    c.order = s.order;
    c.order_fixed = s.order_fixed_before;
    c.failure = s.delta_for_rounding;
    c.norm_total_noise = s.norm_total_noise.value_or(0.0);
    c.quantile = s.quantile;
  }
  void operator()(const privacy::FilteredReleases& s) const {
    c.sampling = s.sampling_threshold > 0 ? "poisson, counted as all examples" : "all examples";
    c.accountant = "zcdp";
    c.threshold = s.sampling_threshold;
    c.clip = s.clip_norm;
    c.sensitivity = s.sensitivity;
    c.loss_sensitivity = s.loss_sensitivity;
    c.steps = s.steps;
    c.releases = s.releases;
  }
  void operator()(const privacy::PerturbedObjective& s) const {
    of_all_examples("objective perturbation");
    c.sensitivity = s.sensitivity;
    c.noise_std = s.noise_std;
    c.releases = s.releases;
  }
  void operator()(const privacy::PerturbedOutput& s) const {
    of_all_examples("gaussian");
    c.sigma = s.sigma;
    c.sensitivity = s.sensitivity;
    c.noise_std = s.noise_std;
    c.releases = s.releases;
  }
  void operator()(const privacy::ChosenParents& s) const {
    of_all_examples("zcdp");
    c.loss_sensitivity = s.loss_sensitivity;
    c.releases = s.releases;
  }
  void operator()(const privacy::CountedExamples& s) const {
    c.releases = s.releases;
    c.accountant = s.accountant;
  }
  void operator()(const privacy::NoPrivacy&) const {}

 private:
  void of_all_examples(const char* accountant) const {
    c.sampling = "all examples";
    c.accountant = accountant;
  }

  StatedNumbers& c;
};

}  // namespace

StatedNumbers read_stated_numbers(std::string_view text) {
  const privacy::Certificate stated = privacy::read_certificate(text);
  StatedNumbers c;
  c.status = text_of(stated.status);
  c.method = stated.promise.method;
  c.generator = stated.rng;
  c.test_set = text_of(stated.test_set);
  c.epsilon = stated.epsilon;
  c.delta = stated.delta;
  c.training_epsilon = stated.promise.epsilon;
  c.training_delta = stated.promise.delta;
  if (stated.unit) c.unit = stated.unit->column;
  c.max_rows = stated.max_rows();
  c.holdout = stated.holdout;
  c.tuning = stated.tuning;
  c.bounds_groups = stated.groups && stated.groups->not_stated.empty();
  std::visit(Copy(c), stated.promise.how);
  c.repeated = stated.releases_repeated;
  c.keys_lost = stated.keys_lost;
  if (stated.size.is_public()) c.examples = static_cast<std::uint64_t>(stated.size.value);
  c.size = stated.size.value;
  c.size_noise = stated.size.noise_std;
  if (stated.feature_release) c.feature_noise = stated.feature_release->sigma;
  c.noisy_values = stated.noisy_values;
  c.split = stated.split;
  return c;
}

std::vector<privacy::Release> StatedNumbers::plan_releases() const {
  std::vector<privacy::Release> planned = releases;
  if (!split) return planned;
  const auto count = std::ranges::find(planned, privacy::Mechanism(privacy::Gaussian{split->sigma}),
                                       &privacy::Release::mechanism);
  if (count != planned.end() && --count->count == 0) planned.erase(count);
  return planned;
}

}  // namespace cudp::verify
