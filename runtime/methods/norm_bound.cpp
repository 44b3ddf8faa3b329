#include "runtime/methods/norm_bound.hpp"

#include <cmath>
#include <numbers>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"

namespace cudp {

namespace {

/// Throws InputError if no public range bounds the inputs, because the certificate states that no
/// gradient is clipped. Table columns and pixels have a public range; arrays of numbers have one
/// only if each row is divided by its norm.
void check_range(Normalise normalise, const Dataset& format) {
  const bool is_scaled = format.is_bytes() || format.is_coded();
  if (normalise == Normalise::unit || (normalise == Normalise::none && is_scaled)) return;
  throw InputError(fmt::format(
      "--method: expected inputs with a public range with norm-bound (a table, pixels, or "
      "--normalise unit), found {}",
      normalise == Normalise::layer ? "--normalise layer" : "an array of floating-point numbers"));
}

}  // namespace

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
    check_range(c.normalise, format);
    c.clip_norm = norm_bound(network, format);
  };
  entry.make = make_method<NormBound>;
  return entry;
}

}  // namespace cudp
