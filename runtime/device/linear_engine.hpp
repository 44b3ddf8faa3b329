#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/layers/kinds.hpp"
#include "kernels/linear/sign_weights.hpp"
#include "kernels/random/random.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Computes sums over the training set, or over a batch of it (draw_batch()), for a linear model of
/// two classes. The training set stays on a device. A model has d = features + 1 weights: one per
/// feature, and then the bias, which is the weight of a constant feature 1.
///
/// Every example's contribution to a sum is rounded to a multiple of a power of two, the grid, and
/// the multiples are added without error. So adding or removing an example changes a sum by exactly
/// that example's rounded contribution, and no result depends on the number of threads or blocks.
class LinearEngine {
 public:
  LinearEngine() = default;
  LinearEngine(const LinearEngine&) = delete;
  LinearEngine& operator=(const LinearEngine&) = delete;
  virtual ~LinearEngine() = default;

  /// Returns d, the number of weights including the bias.
  virtual int dimension() const = 0;
  /// Returns the number of examples of the training set.
  virtual std::size_t size() const = 0;

  /// Draws a batch by Poisson sampling: each example is drawn with probability threshold / 2^32.
  /// Later sums are over this batch; before the first call they are over all examples.
  virtual void draw_batch(const RandomStream& stream, std::uint64_t threshold) = 0;
  /// Returns the indices, ascending, of the examples that the last call of draw_batch() drew. They
  /// must not be published, because the privacy bound assumes that batches are secret.
  virtual std::vector<std::uint32_t> batch() = 0;

  /// Returns the sum over the batch of the examples' loss gradients at weights w, each clipped to
  /// norm max_norm. w and the result: [d]. Also stores the score of each example, the scalar
  /// product of w and its features, for clipped_losses().
  virtual std::vector<double> clipped_gradient_sum(std::span<const float> w, double max_norm) = 0;

  /// Returns, for each step size a in `steps`, the sum over the batch of the examples' losses at
  /// weights w - a * direction, each clipped to max_loss. direction: [d]. w: the weights of the
  /// last call of clipped_gradient_sum(). All step sizes together need a single pass over the
  /// features.
  virtual std::vector<double> clipped_losses(std::span<const float> direction,
                                             std::span<const float> steps, double max_loss) = 0;

  /// Returns the number of examples of a test set that weights w [d] classify correctly.
  virtual std::uint64_t correct(std::span<const float> w, const Dataset& test) = 0;
};

/// Makes an engine on the CPU. loss: logistic or hinge. max_examples: public upper bound on the
/// number of examples; it determines the grid to which contributions are rounded. threads: number
/// of threads, 0 for all cores. weights: weight of each class, multiplied with the loss before
/// clipping. `train` must outlive the engine. Throws InputError unless `train` has two classes.
std::unique_ptr<LinearEngine> make_cpu_linear_engine(const Dataset& train, Loss loss,
                                                     double max_examples, int threads,
                                                     SignWeights weights = {});

/// Makes an engine on a CUDA device. Throws Error if there is no device that can be used. train:
/// the training set. loss: the model's loss. max_examples: public upper bound on the number of
/// examples. device: index of the device. weights: weight of each class, by which the loss is
/// multiplied before clipping.
std::unique_ptr<LinearEngine> make_cuda_linear_engine(const Dataset& train, Loss loss,
                                                      double max_examples, int device = 0,
                                                      SignWeights weights = {});

}  // namespace cudp
