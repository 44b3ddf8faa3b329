#pragma once
#include "models/model.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/methods/dpsgd.hpp"

namespace cudp {

/// The norm bound of AdaCliP's table 1 (Pichapati et al. 2019, section 6): DP-SGD without clipping,
/// for logistic regression, whose gradients cannot be longer than its inputs allow.
///
/// Departs from the paper, whose 28 for MNIST is |x| alone, without the bias and the softmax's
/// sqrt(2): `--method dpsgd --clip 28` clips to that. Here C = 39.6. The engine clips to C all the
/// same, which cuts nothing and makes the promise one of the code and not of the data.
class NormBound final : public DpSgd {
 public:
  using DpSgd::DpSgd;

 protected:
  void describe_clipping(privacy::NoisySums& sums) const override;
};

/// C. An example's gradient is (p - y) (x, 1)^T. A feature is in [0, 1], or in what a byte of 0 to
/// 255 can come to: public, and no example is asked. |p - y| is at most 1 with one logit, sqrt(2)
/// with one a class. Throws InputError unless the network is one dense layer under a logistic or
/// softmax loss. Rounded up, so that no input is longer than C.
double norm_bound(const Network& network, const Dataset& format);

MethodEntry norm_bound_method();

}  // namespace cudp
