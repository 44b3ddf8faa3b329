#pragma once
#include "models/model.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/methods/dpsgd.hpp"

namespace cudp {

/// Method norm-bound: DP-SGD for logistic regression with a clipping norm C that is so large that
/// no gradient is clipped. C is the largest norm that a gradient can have with the given range of
/// inputs. This is "norm bound" in table 1 of the paper on AdaCliP (Pichapati et al. 2019, section
/// 6).
///
/// The paper has C = 28 for MNIST, the largest norm of the inputs x alone. Here C = 39.6, because
/// it includes the bias and the factor sqrt(2) of the softmax. (`--method dpsgd --clip 28` clips as
/// in the paper.) The engine still clips to C: that changes no gradient, but makes the guarantee
/// independent of the range of the data.
class NormBound final : public DpSgd {
 public:
  using DpSgd::DpSgd;

 protected:
  void describe_clipping(privacy::NoisySums& sums) const override;
};

/// Returns C, an upper bound on the gradient norm of any example, rounded up. The gradient is (p -
/// y) (x, 1)^T, where x are the features and p - y is the loss's derivative in the logits:
/// predicted probabilities p minus the label y as 0s and 1s. A feature is in [0, 1], or in the
/// public range to which a byte 0 to 255 is mapped. The norm of p - y is at most 1 with one logit,
/// sqrt(2) with one logit per class, and the threshold of the Huber loss with that loss. Reads no
/// example. Throws InputError unless the network is one dense layer with a logistic, softmax or
/// Huber loss.
double norm_bound(const Network& network, const Dataset& format);

MethodEntry norm_bound_method();

}  // namespace cudp
