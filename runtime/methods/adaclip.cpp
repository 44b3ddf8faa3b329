#include "runtime/methods/adaclip.hpp"

#include <cmath>
#include <variant>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/make_plan.hpp"

namespace cudp {
namespace {

/// Throws InputError if the network has a trainable embedding. AdaCliP subtracts its estimate m of
/// the mean gradient, which makes every coordinate nonzero, but the kernels of an embedding require
/// that only the rows of the example's own words are nonzero.
void check_tables(const Network& network) {
  for (const NetworkLayer& l : network.layers)
    if (const auto* table = std::get_if<Embedding>(&l.layer);
        table != nullptr && table->trainable && l.has_parameters())
      throw InputError("--model: expected no trainable embedding with --method adaclip, found " +
                       table->name);
}

/// Throws InputError unless d^2 max_variance <= 2^104, where d is the network's number of
/// parameters. The larger the variance, the larger are the scales that gradients are divided by
/// before they are squared, and float32 rounds squares below 2^-126 to 0. Within this limit, the
/// sum of all lost squares is below the relative error 2^-20 that the calculation of norms allows
/// for.
void check_variances(const Network& network, double max_variance) {
  const auto d = static_cast<double>(network.parameter_count);
  if (const double bound = 0x1p104 / (d * d); max_variance > bound)
    throw InputError(
        fmt::format("--adaclip-most: expected at most {:.3g} for {} parameters, since above that "
                    "float32 loses their squares; found {:.3g}",
                    bound, network.parameter_count, max_variance));
}

}  // namespace

AdaClip::AdaClip(const MethodContext& context)
    : AdaClip(context,
              with_noise(context.config,
                         plan_without_noise(
                             context, {.clip_norm = 1.0, .contribution = TransformedGradient{}}))) {
}

void AdaClip::initialise(TrainState& state) const {
  const auto& o = config().of<AdaClipOptions>();
  state.mean.resize(state.parameters.size());
  state.deviation.assign(state.parameters.size(),
                         static_cast<float>(std::sqrt(o.min_variance * o.max_variance)));
}

StepRecipe AdaClip::recipe() const {
  const auto& o = config().of<AdaClipOptions>();
  return {// B_t: each example with probability q, or in one step of each epoch
          .draw = plan().draw(),
          // scale_j = sqrt(s_j) sqrt(sum_l s_l);  w_i = (g_i - m) / scale
          // sum over B_t of w_i / max(1, |w_i|)
          // m <- beta1 m + (1 - beta1) g~;  s^2 <- beta2 s^2 + (1 - beta2) v(g~)
          .contribution = TransformedGradient{{.beta1 = static_cast<float>(o.beta1),
                                               .beta2 = static_cast<float>(o.beta2),
                                               .min_variance = static_cast<float>(o.min_variance),
                                               .max_variance = static_cast<float>(o.max_variance),
                                               .literal = o.literal}},
          // g~ = scale (sum + N(0, sigma^2 I)) / b + m;  theta_{t+1} = theta_t - eta_t g~
          .optimizer = optimizer_settings(config())};
}

void AdaClip::describe_clipping(privacy::NoisySums& sums) const {
  sums.clipped = "gradients centred and scaled by numbers of earlier releases";
}

MethodEntry adaclip_method() {
  using namespace option_rows;
  using Options = AdaClipOptions;
  MethodEntry entry;
  entry.name = "adaclip";
  entry.options = {number("adaclip-beta1", "B", &Options::beta1, kUnit,
                          "adaclip: decay rate of the gradients' mean"),
                   number("adaclip-beta2", "B", &Options::beta2, kUnit,
                          "adaclip: decay rate of the gradients' variance"),
                   number("adaclip-least", "H1", &Options::min_variance, kVariance,
                          "adaclip: minimum variance of a coordinate"),
                   number("adaclip-most", "H2", &Options::max_variance, kVariance,
                          "adaclip: maximum variance of a coordinate; tune this one"),
                   toggle("adaclip-literal", &Options::literal,
                          "adaclip: the paper's variance estimate, for batches of one")};
  entry.transforms_gradients = true;
  entry.uses = engine_method_options();
  entry.ignores = {"clip"};
  entry.own_tuning =
      "it scales every coordinate of a gradient before it clips, and has no use for clip; type "
      "--lr "
      "(16 times as large to begin with) and --adaclip-most";
  entry.tuned_by = {"lr", "adaclip-most"};
  entry.complete = [](TrainConfig& c) {
    if (c.clipping != Clipping::flat)
      throw InputError("--clipping: expected flat for method adaclip");
    const auto& o = c.of<Options>();
    if (o.min_variance > o.max_variance)
      throw InputError("--adaclip-most: expected at least adaclip-least");
  };
  entry.fit = [](TrainConfig& c, const Network& network, const Dataset&) {
    check_tables(network);
    check_variances(network, c.of<Options>().max_variance);
  };
  entry.plans_ahead = true;
  entry.make = make_method<AdaClip>;
  return entry;
}

}  // namespace cudp
