#pragma once
// Layers of the CPU backend. Each is a file of layers/, which contains everything the CPU needs for
// it: storage, passes, norms and sums.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/layers/image.hpp"
#include "models/model.hpp"

namespace cudp::cpu {

class Workspace;
struct Coordinates;

/// Destination of gradients, [Storage::packed]: either the sum of clipped gradients, each number
/// rounded by itself, or a single example's gradient as it is.
struct GradientSum {
  std::int32_t* units = nullptr;
  float inverse_grid = 0.0f;  ///< a power of two
  float* plain = nullptr;     ///< replaces `units` if not null
};

/// Maximum number of examples in flight.
inline constexpr int kMaxChunk = 64;

/// Number of floats in a block of columns: the widest vector.
inline constexpr int kColumnBlock = 16;
inline std::int64_t padded(std::int64_t n) {
  return (n + kColumnBlock - 1) / kColumnBlock * kColumnBlock;
}

/// Returns n as 32 bits. Throws Error if it does not fit.
std::int32_t narrow(std::int64_t n);

/// Activations between two layers. A layer that works in place has the same edge as input and
/// output.
struct CpuEdge {
  ImageLayout layout;
  std::int64_t value = 0;     ///< offset of the values in one example's activations
  std::int64_t gradient = 0;  ///< offset in the gradients; see keeps_gradients
  /// Whether gradients of all examples in flight are stored; otherwise only the current one's.
  bool keeps_gradients = false;
  /// Whether it is a text, of which only the positions of its own words are used.
  bool is_sequence = false;

  /// Returns the number of floats, in whole blocks. Those beyond the layout's size are zero
  /// (CpuLayout::zeros).
  std::int64_t size() const { return padded(layout.size()); }
};

/// Sizes of a network's arrays [floats], and the offsets of its parameters. Layers reserve their
/// own parts.
struct Storage {
  std::int64_t values = 0;     ///< activations, per example in flight
  std::int64_t gradients = 0;  ///< gradients with respect to activations, of the current example
  /// Gradients with respect to activations of those edges that keep them, per example in flight.
  std::int64_t kept_gradients = 0;
  std::int64_t packed = 0;            ///< weights, in the order in which products read them
  std::int64_t transposed = 0;        ///< weights, in the order for input gradients
  std::int64_t example_gradient = 0;  ///< whole parameter gradients, of the current example
  std::int64_t saved = 0;    ///< numbers that forward() saves for backward(), per example in flight
  std::int64_t numbers = 0;  ///< integers of scratch memory, of the current example
  /// Offset of each parameter in the packed and in the transposed weights: the trained ones, [d],
  /// then those of frozen layers. In the latter, -1 for none.
  std::vector<std::int32_t> packed_offset;
  std::vector<std::int32_t> transposed_offset;

  /// Adds n floats to one of the sizes above and returns the offset of the first.
  static std::int64_t reserve(std::int64_t& size, std::int64_t n) {
    const std::int64_t first = size;
    size += n;
    return first;
  }
};

/// Position of a layer in its network.
struct LayerSite {
  const Network* network = nullptr;
  const NetworkLayer* layer = nullptr;  ///< null for the input
  CpuEdge in;
  CpuEdge out;
  bool gives_input_gradient = false;  ///< whether an earlier layer is trained
  /// Whether the first layer reads coded rows directly from the data set. Set for the input and for
  /// the first layer.
  bool passes_codes = false;
};

/// Layer of the CPU backend. It is shared by all workers and does not change; all data of a step is
/// in the Workspace. Passes are called with examples [first, first + count) of those in flight.
class CpuLayer {
 public:
  CpuLayer() = default;
  CpuLayer(const CpuLayer&) = delete;
  CpuLayer& operator=(const CpuLayer&) = delete;
  virtual ~CpuLayer() = default;

  // Properties of a layer from which build_layout() chooses the layout.

  /// Whether this layer and all layers before it process one example after the other, so that the
  /// example's numbers stay in the first-level cache. The layers after the last such layer process
  /// all examples in flight together, so that weights are read once for many examples.
  virtual bool runs_by_example() const { return false; }
  /// Whether the whole parameter gradient is stored, for one example at a time. gradient() and
  /// add() are then called for one example after the other, whatever the layer's position.
  virtual bool adds_by_example() const { return false; }
  virtual bool works_in_place() const { return false; }
  /// Whether backward() reads the output of forward(). The next layer then must not work in place.
  virtual bool reads_own_output() const { return false; }
  /// Whether gradient() reads the result of backward(). backward() is then called even for the
  /// first layer with parameters.
  virtual bool needs_backward() const { return false; }
  /// Minimum number of examples in flight; with fewer, its products would have too few rows.
  virtual int min_in_flight() const { return 4; }
  virtual int input_border() const { return 0; }
  /// Whether the layer, if it is the first one, reads the data set's pixels without padding
  /// channels.
  virtual bool takes_unpadded_input() const { return false; }
  /// Whether the layer, if it is the first one, can read rows of a table by their codes
  /// (kernels/common/coded_rows.hpp).
  virtual bool takes_codes() const { return false; }

  void lay_out(const LayerSite& site, Storage& storage) {
    site_ = site;
    reserve(storage);
  }
  /// Returns whether the layer has parameters that are trained.
  bool has_parameters() const { return site_.layer != nullptr && site_.layer->has_parameters(); }
  /// Returns whether the layer has parameters that are constants: gradient() and add() are not
  /// called then.
  bool is_frozen() const { return site_.layer != nullptr && site_.layer->frozen; }
  /// Returns NetworkLayer::group. Requires parameters.
  int group() const { return site_.layer->group; }

  // The passes, in this order; see Worker. A pass writes the padding channels of all pixels that it
  // writes, so that nothing depends on the previous content of an example's memory.

  virtual void forward(Workspace& w, int first, int count) const = 0;
  /// Writes the squared norms of the parameters' gradients to w.norm(), after the transform if
  /// w.coordinates is set. Called before backward() if the layer processes single examples or its
  /// gradients are added together; otherwise after backward() of all layers.
  virtual void gradient(Workspace&, int, int) const {}
  /// Computes the gradient with respect to the input. Called only if an earlier layer is trained,
  /// or if needs_backward().
  virtual void backward(Workspace&, int, int) const {}
  /// Adds w.factor() times the parameters' gradients to `sum`. Skips examples with factor 0,
  /// because their numbers may be NaN.
  virtual void add(Workspace&, int, int, const GradientSum& sum) const { (void)sum; }

  /// Returns c of dense_square() (kernels/contribution/coordinates_math.hpp); 0 for layers that do
  /// not use it.
  virtual double coordinate_shift(const Coordinates&) const { return 0.0; }

 protected:
  /// Makes the layer's tables and reserves its storage.
  virtual void reserve(Storage&) {}

  const CpuEdge& in() const { return site_.in; }
  const CpuEdge& out() const { return site_.out; }
  bool gives_input_gradient() const { return site_.gives_input_gradient; }
  bool passes_codes() const { return site_.passes_codes; }
  /// Returns the i-th of the layer's tensors.
  const ParameterTensor& parameter(std::size_t i) const {
    return site_.network->tensor(*site_.layer, i);
  }

 private:
  LayerSite site_;
};

/// Weights of a product: rows of `columns` floats, then a bias of `columns` floats. Packed weights
/// and their packed gradients have the same offsets.
struct PackedMatrix {
  std::int64_t offset = 0;
  int rows = 0;
  int columns = 0;

  std::int64_t bias() const { return offset + static_cast<std::int64_t>(rows) * columns; }
  std::int64_t size() const { return static_cast<std::int64_t>(rows + 1) * columns; }
  /// Reserves a matrix and sets the offsets of the bias, a tensor of at most `columns` numbers.
  static PackedMatrix reserve(Storage& storage, int rows, int columns, const ParameterTensor& bias);
};

/// Layer that stores an example's whole parameter gradient. The squared numbers are the added ones,
/// so no rounding error in them can make an example add more than its norm allows.
class WholeGradientLayer : public CpuLayer {
 public:
  bool adds_by_example() const final { return true; }
  void gradient(Workspace& w, int first, int count) const final;
  void add(Workspace& w, int first, int count, const GradientSum& sum) const final;

 protected:
  /// Reserves memory for an example's gradient. reserve() must call it with the offset and size of
  /// the layer's packed parameters.
  void reserve_gradient(Storage& storage, std::int64_t packed, std::int64_t size) {
    packed_ = packed;
    size_ = size;
    offset_ = Storage::reserve(storage.example_gradient, size);
  }
  /// Returns the memory for an example's gradient.
  float* gradient_memory(Workspace& w) const;
  /// Writes one example's gradient, packed like the weights, including all padding.
  virtual void make_gradient(Workspace& w, int example, float* out) const = 0;

 private:
  std::int64_t packed_ = 0;
  std::int64_t size_ = 0;
  std::int64_t offset_ = 0;
};

// The layers: each has a line here and a file in layers/.
std::unique_ptr<CpuLayer> make_input();
std::unique_ptr<CpuLayer> make_layer(const Conv2d& layer);
std::unique_ptr<CpuLayer> make_layer(const Dense& layer);
std::unique_ptr<CpuLayer> make_token_dense(const Dense& layer);  ///< dense layer with per_token
std::unique_ptr<CpuLayer> make_layer(const MaxPool2d& layer);
std::unique_ptr<CpuLayer> make_layer(const AvgPool2d& layer);
std::unique_ptr<CpuLayer> make_layer(const GroupNorm& layer);
std::unique_ptr<CpuLayer> make_layer(const Activate& layer);
std::unique_ptr<CpuLayer> make_layer(const Embedding& layer);
std::unique_ptr<CpuLayer> make_layer(const Recurrent& layer);
std::unique_ptr<CpuLayer> make_layer(const MeanOverTime& layer);

}  // namespace cudp::cpu
