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

/// A linear model of two classes on a training set that stays on a device: what the methods need
/// that work on all examples at once. The weights of the features are followed by that of a
/// constant 1, the bias: d = features + 1.
///
/// Every sum is exact in multiples of a grid (linear_sensitivity.hpp), so one example more or less
/// moves it by that example's own contribution, rounded; and no result depends on the number of
/// threads or blocks.
class LinearEngine {
 public:
  LinearEngine() = default;
  LinearEngine(const LinearEngine&) = delete;
  LinearEngine& operator=(const LinearEngine&) = delete;
  virtual ~LinearEngine() = default;

  virtual int dimension() const = 0;
  /// Examples of the training set.
  virtual std::size_t size() const = 0;

  /// Makes the sums from now on over the examples that the stream draws with probability threshold
  /// / 2^32 each. Until the first call they are over all.
  virtual void draw_batch(const RandomStream& stream, std::uint64_t threshold) = 0;
  /// The examples that draw_batch drew last, ascending. Private.
  virtual std::vector<std::uint32_t> batch() = 0;

  /// The sum of the gradients at w [d], each clipped to max_norm. Keeps the scores at w.
  virtual std::vector<double> clipped_gradient_sum(std::span<const float> w, double max_norm) = 0;

  /// For each step a: the sum of the losses at w - a direction [d], each clipped to max_loss, where
  /// w is that of the last clipped_gradient_sum. One pass over the features for all steps.
  virtual std::vector<double> clipped_losses(std::span<const float> direction,
                                             std::span<const float> steps, double max_loss) = 0;

  /// Examples of a test set that w [d] gets right.
  virtual std::uint64_t correct(std::span<const float> w, const Dataset& test) = 0;
};

/// loss: logistic or hinge. max_examples: a public bound on the number of examples, which the grid
/// follows from. Throws InputError unless `train`, which must outlive the engine, has two classes.
/// threads: 0 takes every core. weights: of the losses, before anything is clipped.
std::unique_ptr<LinearEngine> make_cpu_linear_engine(const Dataset& train, Loss loss,
                                                     double max_examples, int threads,
                                                     SignWeights weights = {});

/// Makes the engine on a CUDA device (cuda/linear.hpp). Throws Error where there is none.
std::unique_ptr<LinearEngine> make_cuda_linear_engine(const Dataset& train, Loss loss,
                                                      double max_examples, int device = 0);

}  // namespace cudp
