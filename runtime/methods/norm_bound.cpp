#include "runtime/methods/norm_bound.hpp"

#include <cmath>
#include <numbers>

#include "runtime/base/error.hpp"

namespace cudp {

double norm_bound(const Network& network, const Dataset& format) {
  const Loss loss = network.spec.loss;
  if (network.layers.size() != 1 || network.parameters.size() != 2 || loss == Loss::hinge)
    throw InputError("--model: expected logistic, or linear, with --method norm-bound, found " +
                     network.spec.name);
  if (loss == Loss::squared)
    throw InputError(
        "--loss: expected huber with --method norm-bound, found squared, whose gradient has no "
        "bound");
  double largest = 1.0;
  if (format.is_bytes()) {
    const auto shift = static_cast<double>(format.shift);
    largest =
        std::fmax(std::fabs(shift), std::fabs(shift + 255.0 * static_cast<double>(format.scale)));
  }
  const double inputs = static_cast<double>(format.shape.size()) * largest * largest + 1.0;
  const double of_logits = loss == Loss::huber      ? static_cast<double>(network.spec.huber)
                           : loss == Loss::logistic ? 1.0
                                                    : std::numbers::sqrt2;
  return of_logits * std::sqrt(inputs) * (1.0 + 1e-6);
}

void NormBound::describe_clipping(privacy::NoisySums& sums) const {
  sums.clip_norm_is = "the longest gradient that any input of the public domain has; none is cut";
}

MethodEntry norm_bound_method() {
  MethodEntry entry;
  entry.name = "norm-bound";
  entry.uses = engine_method_options();
  entry.ignores = {"clip"};  // the method sets the bound itself
  entry.own_tuning =
      "it cuts no gradient, and has no use for clip; type a smaller --lr (an eighth to begin with)";
  entry.tuned_by = {"lr"};
  entry.complete = [](TrainConfig& c) {
    if (c.clipping != Clipping::flat || c.features != Features::none)
      throw InputError(
          "--method: expected flat clipping and no --features with norm-bound, whose bound is that "
          "of the inputs");
  };
  entry.fit = [](TrainConfig& c, const Network& network, const Dataset& format) {
    c.clip_norm = norm_bound(network, format);
  };
  entry.make = make_method<NormBound>;
  return entry;
}

}  // namespace cudp
