#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/clipping/clip.hpp"
#include "kernels/cpu_kernels.hpp"
#include "kernels/random/importance.hpp"
#include "runtime/base/aligned.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/cpu/layout.hpp"

namespace cudp::cpu {

inline std::size_t to_size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// What all workers share during a step: nobody writes it meanwhile.
struct Weights {
  const float* packed;      ///< [Graph::packed_size]
  const float* transposed;  ///< [Graph::transposed_size]
};

/// What gradients are transformed by before they are clipped, packed as the weights are; see
/// coordinates.hpp. Nobody writes it during a step.
struct Coordinates {
  Transform transform;             ///< [Graph::packed_size]
  const float* square;             ///< [Graph::packed_size], 1 / scale^2
  const float* product;            ///< [Graph::packed_size], m / scale^2
  std::span<const double> shifts;  ///< by op, c of dense_square
};

/// By what candidates are accepted instead of clipped. Each example's norm is read and written by
/// the worker that has the example.
struct Acceptance {
  ImportanceRule rule;
  RandomStream stream;  ///< Stream::acceptance
  float* norms;         ///< [examples of the data set]
};

/// What is known of one example after its backward pass. Private.
struct ExampleRecord {
  float loss = 0.0f;
  float squared_norm = 0.0f;
  bool clipped = false;
  bool finite = true;
};

/// One thread's memory for a network, and the passes over a chunk of examples in it.
class Worker {
 public:
  Worker(const Graph& graph, const CpuKernels& kernels);

  /// Adds the clipped gradients of `examples`, at most Graph::chunk of them, to the float32 partial
  /// sum, and settles it into totals(). coordinates: null for the gradients as they are.
  /// acceptance: null for clipping.
  /// records: [examples.size()], or null.
  void add_clipped(const Dataset& data, std::span<const std::uint32_t> examples,
                   const Weights& weights, const ClipSettings& clip, const Coordinates* coordinates,
                   const Acceptance* acceptance, double inverse_grid, ExampleRecord* records);

  /// Norms of the gradients of at most Graph::chunk examples, [examples.size()], 0 for one that is
  /// not finite.
  void norms(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
             float* out);

  /// Logits of at most Graph::chunk examples, [examples.size()][outputs] without padding.
  void logits(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& weights,
              float* out);

  /// One example's gradient, packed, unclipped, into `out` [packed_size], with its squared norm in
  /// each parametric layer, [groups], and its loss.
  float gradient(const Dataset& data, std::uint32_t example, const Weights& weights, float* out,
                 float* squared_norms);

  /// Sum of what was settled, in units of the grid, [packed_size].
  double* totals() { return totals_.data(); }

 private:
  void load(const Dataset& data, std::span<const std::uint32_t> examples);
  void forward(std::size_t first_op, std::size_t last_op, int first, int count, const Weights& w);
  /// Backward through ops last - 1 down to first for examples [begin, begin + count), leaving
  /// squared norms in norms_ and what the sums need in place.
  void backward(std::size_t first_op, std::size_t last_op, int begin, int count, const Weights& w);
  /// Adds factor * gradient of examples [begin, begin + count) in ops [first, last) to `sum`.
  void accumulate(std::size_t first_op, std::size_t last_op, int begin, int count,
                  const float* factors, float* sum);
  void run_batch(const Dataset& data, std::span<const std::uint32_t> examples, const Weights& w,
                 const ClipSettings* clip, float* sum, ExampleRecord* records);
  void forward_op(const Op& op, int first, int count, const Weights& w);
  void backward_op(const Op& op, int begin, int count, const Weights& w);
  /// Of a gradient that lies in direct_.
  float direct_square(const Op& op);
  void transformed_dense_squares(const Op& op, int begin, int count);
  void accumulate_op(const Op& op, int begin, int count, const float* factors, float* sum);

  float* value(int edge, int example);
  float* gradient_of(int edge, int example);
  /// A dense layer's results, and their gradients: where a convolution that pads comes next, they
  /// lie inside a border.
  float* result(const Op& op, int example);
  float* result_gradient(const Op& op, int example);
  float& norm(int example, int group);

  const Graph& graph_;
  const CpuKernels& k_;
  int in_flight_;  ///< examples whose activations are kept at a time
  AlignedVector<float> values_;
  AlignedVector<float> shared_gradients_;
  AlignedVector<float> batched_gradients_;
  AlignedVector<float> direct_;
  AlignedVector<float> statistics_;
  AlignedVector<float> norms_;
  std::vector<float> factors_;
  AlignedVector<float> partial_;
  const Acceptance* acceptance_ = nullptr;    ///< of the examples in flight, or null
  const Coordinates* coordinates_ = nullptr;  ///< of the examples in flight, or null
  AlignedVector<float> inputs_squared_;       ///< the two of transformed_dense_squares
  AlignedVector<float> dense_products_;
  AlignedVector<double> totals_;
};

}  // namespace cudp::cpu
