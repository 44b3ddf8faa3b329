#pragma once
// Layers of the CPU backend. Each is a file of layers/ that contains everything the CPU needs for
// it: storage, forward and backward passes, norms and sums.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/layers/image.hpp"
#include "models/model.hpp"

namespace cudp::cpu {

class Workspace;
struct Coordinates;

/// Array that gradients are added to, [Storage::packed]. Either `units`: integers, to which each
/// number of a clipped gradient is added, multiplied by inverse_grid and rounded. Or `plain`:
/// floats, for a single example's gradient without rounding.
struct GradientSum {
  std::int32_t* units = nullptr;
  float inverse_grid = 0.0f;  ///< 1 / grid, a power of two
  float* plain = nullptr;     ///< if not null, the destination in place of `units`
};

/// Maximum number of examples that a worker processes at once (examples in flight).
inline constexpr int kMaxChunk = 64;

/// Arrays are padded to a multiple of this many floats, the widest SIMD register.
inline constexpr int kColumnBlock = 16;
inline std::int64_t padded(std::int64_t n) {
  return (n + kColumnBlock - 1) / kColumnBlock * kColumnBlock;
}

/// Returns n as 32 bits. Throws Error if it does not fit.
std::int32_t narrow(std::int64_t n);

/// Activations between two layers, as offsets in a thread's memory. A layer that works in place
/// (overwrites its input) has the same edge as input and output.
struct CpuEdge {
  ImageLayout layout;
  std::int64_t value = 0;     ///< offset of the values in one example's activations
  std::int64_t gradient = 0;  ///< offset of their gradients, in one of two arrays (keeps_gradients)
  /// Whether gradients are stored for all examples that are processed at once; otherwise only for
  /// the current one.
  bool keeps_gradients = false;
  /// Whether the values are a sequence, of which only the positions up to the text's end are used.
  bool is_sequence = false;

  /// Returns the number of floats, padded to whole SIMD registers. Those past the layout's size are
  /// zero (CpuLayout::zeros).
  std::int64_t size() const { return padded(layout.size()); }
};

/// Sizes of a thread's arrays for one example and of the arrays of weights [floats], and the offset
/// of each parameter in these. Each layer reserves its own part.
struct Storage {
  std::int64_t values = 0;     ///< activations of each example in flight
  std::int64_t gradients = 0;  ///< gradients with respect to activations, of the current example
  /// Gradients with respect to activations, of each example in flight, for edges with
  /// keeps_gradients.
  std::int64_t kept_gradients = 0;
  std::int64_t packed = 0;  ///< weights, in the order in which forward products read them
  /// Weights, in the order in which the products that compute input gradients read them.
  std::int64_t transposed = 0;
  /// Parameter gradient of the current example, for layers that store it as a whole.
  std::int64_t example_gradient = 0;
  /// Numbers that forward() saves for backward(), of each example in flight.
  std::int64_t saved = 0;
  std::int64_t numbers = 0;  ///< scratch memory of integers, for the current example
  /// Offset of each parameter in the packed and in the transposed weights: of the trained ones,
  /// [d], then of those of frozen layers. transposed_offset is -1 for parameters that are not
  /// copied there.
  std::vector<std::int32_t> packed_offset;
  std::vector<std::int32_t> transposed_offset;

  /// Adds n floats to one of the sizes above and returns the offset of the first.
  static std::int64_t reserve(std::int64_t& size, std::int64_t n) {
    const std::int64_t first = size;
    size += n;
    return first;
  }
};

/// Position of a layer in its network, and the edges (activation arrays) that it reads and writes.
struct LayerSite {
  const Network* network = nullptr;
  const NetworkLayer* layer = nullptr;  ///< null for the input
  CpuEdge in;
  CpuEdge out;
  bool gives_input_gradient = false;  ///< whether an earlier layer is trained
  /// Whether the first layer reads rows in compact form (CodedRows) directly from the data set. Set
  /// for the input and for the first layer.
  bool passes_codes = false;
};

/// Layer of the CPU backend. All workers share it, and it does not change; all data of a step is in
/// the Workspace. Passes process examples first .. first + count - 1 of those in flight, the
/// examples that a worker processes at once.
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
  virtual bool runs_per_example() const { return false; }
  /// Whether the whole parameter gradient is stored, for one example at a time. gradient() and
  /// add() are then called for one example after the other, whatever the layer's position.
  virtual bool stores_example_gradient() const { return false; }
  virtual bool works_in_place() const { return false; }
  /// Whether backward() reads the output of forward(). The next layer then must not work in place.
  virtual bool reads_own_output() const { return false; }
  /// Whether gradient() reads the result of backward(). backward() is then called even for the
  /// first layer with parameters.
  virtual bool needs_backward() const { return false; }
  /// Minimum number of examples to process at once; with fewer, its products would have too few
  /// rows.
  virtual int min_in_flight() const { return 4; }
  virtual int input_border() const { return 0; }
  /// Whether the layer, if it is the first one, expects pixels without padding channels, as in the
  /// data set.
  virtual bool takes_unpadded_input() const { return false; }
  /// Whether the layer, if it is the first one, can read a table's rows in compact form
  /// (CodedRows), without their dense form.
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
  /// Returns the index of the layer among those that are trained (NetworkLayer::group). Requires
  /// trained parameters.
  int group() const { return site_.layer->group; }

  // The passes, in the order in which Worker calls them. A pass writes the padding channels of all
  // pixels that it writes, so that nothing depends on the previous content of an example's memory.

  virtual void forward(Workspace& w, int first, int count) const = 0;
  /// Writes the squared norm of the layer's parameter gradient to w.norm() for each example, after
  /// the transform if w.coordinates is set. Called before the layer's own backward(). Exception:
  /// layers with adds_by_example() among those that process all examples in flight together; for
  /// them it is called after the backward() of all these.
  virtual void gradient(Workspace&, int, int) const {}
  /// Computes the gradient with respect to the input. Called only if an earlier layer is trained,
  /// or if needs_backward() is true.
  virtual void backward(Workspace&, int, int) const {}
  /// Multiplies each example's parameter gradient of this layer by w.factor() and adds it to `sum`.
  /// Skips examples with factor 0, because their gradients may be NaN.
  virtual void add(Workspace&, int, int, const GradientSum& sum) const { (void)sum; }

  /// For the norm of gradients after coordinate-wise clipping, (g - m) / scale: returns the part
  /// that no gradient changes, the sum of (m / scale)^2 over the layer's parameters. Layers that do
  /// not compute that norm with dense_square() return 0.
  virtual double coordinate_shift(const Coordinates&) const { return 0.0; }

 protected:
  /// Computes the layer's index tables and reserves its storage.
  virtual void reserve(Storage&) {}

  const CpuEdge& in() const { return site_.in; }
  const CpuEdge& out() const { return site_.out; }
  bool gives_input_gradient() const { return site_.gives_input_gradient; }
  bool passes_codes() const { return site_.passes_codes; }
  const ParameterTensor& parameter(std::size_t i) const {
    return site_.network->tensor(*site_.layer, i);
  }

 private:
  LayerSite site_;
};

/// Weights of a matrix product as they are stored: rows of `columns` floats, then a bias of
/// `columns` floats. Packed weights and their packed gradients have the same offsets.
struct PackedMatrix {
  std::int64_t offset = 0;
  int rows = 0;
  int columns = 0;

  std::int64_t bias() const { return offset + static_cast<std::int64_t>(rows) * columns; }
  std::int64_t size() const { return static_cast<std::int64_t>(rows + 1) * columns; }
  /// Reserves a matrix and its bias in the packed weights, and records the packed offsets of the
  /// bias's numbers (at most `columns`) in `storage`. The caller records those of the matrix.
  static PackedMatrix reserve(Storage& storage, int rows, int columns, const ParameterTensor& bias);
};

/// Base of layers that store an example's whole parameter gradient. The norm is computed from the
/// same rounded numbers that are added later, so their rounding errors do not increase the
/// sensitivity.
class WholeGradientLayer : public CpuLayer {
 public:
  bool stores_example_gradient() const final { return true; }
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
  float* gradient_memory(Workspace& w) const;
  /// Writes one example's gradient, in the order of the packed weights, including all padding.
  virtual void make_gradient(Workspace& w, int example, float* out) const = 0;

 private:
  std::int64_t packed_ = 0;
  std::int64_t size_ = 0;
  std::int64_t offset_ = 0;
};

// Functions that make the layers. Each kind of layer has one here, and a file in layers/.
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
