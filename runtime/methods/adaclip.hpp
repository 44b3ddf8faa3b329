#pragma once
#include <cstdint>

#include "runtime/methods/engine_method.hpp"
#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Options of method AdaCliP (AdaClip). Names h1 and h2 are those of the paper.
struct AdaClipOptions {
  double beta1 = 0.99;          ///< decay rate of the running estimate of the gradients' mean
  double beta2 = 0.9;           ///< decay rate of the running estimate of the gradients' variance
  double min_variance = 1e-12;  ///< h1, minimum of the estimated variance of a coordinate
  double max_variance = 1e-2;   ///< h2, maximum of the estimated variance of a coordinate
  bool literal = false;         ///< use the paper's variance estimate, without the batch size
};

/// Method AdaCliP: DP-SGD in which each gradient g is transformed, coordinate by coordinate, to w =
/// (g - m) / scale before it is clipped, so that clipping and noise fit the shape of the gradients.
/// m and s, from which scale is computed, are estimates of the gradients' mean and standard
/// deviation, made from released gradients. Privacy is that of DP-SGD with clipping norm 1.
/// Pichapati et al. 2019 (arXiv:1908.07643), Algorithm 1.
///
/// Differences from the paper, with b the expected batch size, sigma the noise multiplier, g~ the
/// released mean gradient, and h1, h2 the bounds AdaClipOptions::min_variance and max_variance:
/// - In the paper a step uses a single example, whose user adds the noise. In a batch of b
///   examples, the noise of coordinate j of g~ has variance (scale_j sigma / b)^2, and the variance
///   of a mean of b gradients is s^2 / b. So v = clamp(b ((g~ - m)^2 - (scale sigma / b)^2), h1,
///   h2) estimates the variance of an example's gradient. --adaclip-literal omits the factor b.
/// - m is added back once, not (drawn batch size / b) times, because with Poisson sampling the
///   drawn size is private.
/// - m is scaled down if |m / scale| > 4, so that rounding in float32 cannot raise the sensitivity
///   by more than the plan accounts for (kernels/contribution/coordinates_math.hpp).
///
/// Cost: the norm of a dense layer's w takes two matrix products of the layer's size per example
/// (kernels/contribution/coordinates_math.hpp); the norm of DP-SGD takes none. An exact norm cannot
/// take less, because m and s differ in every weight. Multiply-adds per example, of DP-SGD + those
/// that AdaCliP adds: mlp with 60 inputs 150,000 + 140,000; logistic on 784 inputs 15,700 + 15,700;
/// cnn 1.1 million + 40,000, because its convolutions compute their gradients anyway. Measured: a
/// step takes 1.95 times as long as DP-SGD on mlp, 1.4 times on logistic, 1.2 times on cnn (one
/// core, AVX-512).
class AdaClip final : public EngineMethod {
 public:
  explicit AdaClip(const MethodContext& context);
  AdaClip(const MethodContext& context, const PrivacyPlan& plan) : EngineMethod(context, plan) {}

  StepRecipe recipe() const override;

 protected:
  void initialise(TrainState& state) const override;
  void describe_clipping(privacy::NoisySums& sums) const override;
};

MethodEntry adaclip_method();

}  // namespace cudp
