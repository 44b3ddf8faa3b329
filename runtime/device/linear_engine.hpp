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

/// Linear model of two classes with a training set that stays on a device, for methods that use all
/// examples at once. The weights of the features are followed by the bias, the weight of a constant
/// 1: d = features + 1.
///
/// Every example's contribution is rounded to a multiple of a power of two, the grid
/// (linear_sensitivity.hpp), and these are added without error. Adding or removing an example
/// therefore changes it by exactly that example's rounded contribution, and no result depends on
/// the number of threads or blocks.
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

  /// Draws a batch: each example with probability threshold / 2^32. Later sums are over this batch;
  /// before the first call they are over all examples.
  virtual void draw_batch(const RandomStream& stream, std::uint64_t threshold) = 0;
  /// Returns the examples that draw_batch() drew last, in ascending order. Private.
  virtual std::vector<std::uint32_t> batch() = 0;

  /// Returns the sum of the gradients at weights w [d] over the batch, each clipped to norm
  /// max_norm. Stores the scores at w for clipped_losses().
  virtual std::vector<double> clipped_gradient_sum(std::span<const float> w, double max_norm) = 0;

  /// Returns for each step size a in `steps` the sum over the batch of the losses at w - a
  /// direction [d], each clipped to max_loss. w is the argument of the last clipped_gradient_sum().
  /// Needs one pass over the features for all steps.
  virtual std::vector<double> clipped_losses(std::span<const float> direction,
                                             std::span<const float> steps, double max_loss) = 0;

  /// Returns the number of examples of a test set that w [d] classifies correctly.
  virtual std::uint64_t correct(std::span<const float> w, const Dataset& test) = 0;
};

/// Makes an engine on the CPU. loss: logistic or hinge. max_examples: public bound on the number of
/// examples, which determines the grid. threads: 0 for all cores. weights: weights of the losses,
/// applied before clipping. `train` must outlive the engine. Throws InputError unless it has two
/// classes.
std::unique_ptr<LinearEngine> make_cpu_linear_engine(const Dataset& train, Loss loss,
                                                     double max_examples, int threads,
                                                     SignWeights weights = {});

/// Makes an engine on a CUDA device (cuda/linear.hpp). Throws Error if there is none.
std::unique_ptr<LinearEngine> make_cuda_linear_engine(const Dataset& train, Loss loss,
                                                      double max_examples, int device = 0,
                                                      SignWeights weights = {});

}  // namespace cudp
