#pragma once
// Linear model on a CUDA device, with the whole training set in its memory.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/linear/linear_model.hpp"
#include "runtime/data/numbering.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/sample.hpp"
#include "runtime/device/linear_data.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/device/linear_sensitivity.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// LinearEngine on a CUDA device. Keeps the training set in device memory. It adds integers, so the
/// order of additions does not affect a result.
class DeviceLinear final : public LinearEngine {
 public:
  /// Copies the training set to the device; `train` is not needed afterwards. max_examples: public
  /// upper bound on the number of examples. It determines the grid, the power of two to whose
  /// multiples summands are rounded. weights: weights of the two classes. gpu: the device. loss:
  /// the model's loss.
  DeviceLinear(Gpu gpu, const Dataset& train, Loss loss, double max_examples,
               SignWeights weights = {});

  int dimension() const override { return d_; }
  std::size_t size() const override { return size_; }

  void draw_batch(const RandomStream& stream, std::uint64_t threshold) override;
  std::vector<std::uint32_t> batch() override;

  std::vector<double> clipped_gradient_sum(std::span<const float> w, double max_norm) override;

  std::vector<double> clipped_losses(std::span<const float> direction, std::span<const float> steps,
                                     double max_loss) override;

  std::uint64_t correct(std::span<const float> w, const Dataset& test) override;

 private:
  /// Examples in device memory in tiles of 16 examples, with the features of a tile's examples next
  /// to each other. The buffers may have space for more than `tiles` tiles.
  struct Tiles {
    Buffer<float> features;  ///< [capacity in tiles, d, 16]
    Buffer<float> signs;     ///< [capacity in tiles, 16]
    Buffer<float> norms;     ///< [capacity in tiles, 16]
    std::int64_t tiles = 0;

    std::size_t slots() const { return signs.size(); }
  };

  std::size_t dimension_count() const { return static_cast<std::size_t>(d_); }

  Tiles space_for(std::int64_t tiles);
  Tiles uploaded(const LinearData& data);

  void score(const Tiles& tiles, std::span<const float> w, const Buffer<float>& to);

  /// Returns 1 / grid as a float. On the device, products are multiplied by it and rounded, which
  /// gives integer multiples of the grid. (The CPU multiplies in double.)
  static float inverse_of(double grid);

  void clear_totals(std::size_t count);
  /// Returns the first `count` sums that the device computed as integers, multiplied by the grid
  /// and converted to double. The integers are below 2^53, so the conversion is exact.
  std::vector<double> collected(std::size_t count, double grid) const;

  Gpu gpu_;
  Loss loss_;
  double max_examples_;
  SignWeights weights_;
  Numbering numbering_;
  std::size_t size_;
  int d_ = 0;
  Tiles all_;
  Tiles batch_;
  const Tiles* now_ = &all_;
  Buffer<float> w_;              // [d], weights or a direction
  Buffer<float> scores_;         // scores at the last w
  Buffer<float> along_;          // scores of the last direction
  Buffer<float> derivatives_;    // clipped derivatives
  Buffer<float> steps_;          // grows when more are needed
  Buffer<FixedPoint> totals_;    // grows when more are needed
  Buffer<std::uint32_t> index_;  // Numbering::index()
  SampleScratch scratch_;
  Buffer<std::uint32_t> drawn_;  // [size]
};

}  // namespace cudp::cuda::inline CUDP_SIMT
