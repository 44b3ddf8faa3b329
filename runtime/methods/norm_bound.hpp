#pragma once
#include "models/model.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/methods/dpsgd.hpp"

namespace cudp {

/// The method "norm bound" of table 1 of the paper on AdaCliP (Pichapati et al. 2019, section 6):
/// DP-SGD for logistic regression whose clipping norm C is so large that no gradient is clipped. C
/// is the largest norm that a gradient can have with the given range of inputs.
///
/// The paper has C = 28 for MNIST, the largest norm of the inputs x alone. Here C = 39.6, because
/// it includes the bias and the factor sqrt(2) of the softmax. (`--method dpsgd --clip 28` clips as
/// in the paper.) The engine still clips to C. This changes no gradient, but the guarantee then
/// does not depend on the range of the data.
class NormBound final : public DpSgd {
 public:
  using DpSgd::DpSgd;

 protected:
  void describe_clipping(privacy::NoisySums& sums) const override;
};

/// Returns C, an upper bound on the gradient norm of any example. The gradient is (p - y) (x, 1)^T,
/// with x the features and p - y the loss's derivative in the logits: predicted probabilities p
/// minus the label y as 0s and 1s. A feature is in [0, 1], or in the public range that a byte 0 to
/// 255 is mapped to; no example is read. |p - y| is at most 1 with one logit, sqrt(2) with one
/// logit per class, and the Huber loss's threshold with that loss. C is rounded up. Throws
/// InputError unless the network is one dense layer with a logistic, softmax or Huber loss.
double norm_bound(const Network& network, const Dataset& format);

MethodEntry norm_bound_method();

}  // namespace cudp
