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

/// Destination to which a layer adds gradients of its parameters: one of two arrays, each with
/// Storage::packed elements in the order of the packed weights. The array `units` is a sum over a
/// batch: each number of a clipped gradient is multiplied by inverse_grid, rounded to an integer
/// and added. The array `plain` is the gradient of a single example: its numbers are added as
/// floats, without rounding. `plain` is used if it is not null, otherwise `units`.
struct GradientSum {
  std::int32_t* units = nullptr;
  float inverse_grid = 0.0f;  ///< 1 / grid, a power of two
  float* plain = nullptr;     ///< if not null, the destination in place of `units`
};

/// Maximum number of examples that a thread processes at once.
inline constexpr int kMaxChunk = 64;

/// Number of floats in the widest SIMD register. Arrays are padded to a multiple of this length.
inline constexpr int kColumnBlock = 16;
/// Returns the padded length of an array of n floats: n, rounded up to a multiple of kColumnBlock.
inline std::int64_t padded(std::int64_t n) {
  return (n + kColumnBlock - 1) / kColumnBlock * kColumnBlock;
}

/// Returns n as a 32-bit integer. Throws Error if it does not fit.
std::int32_t narrow(std::int64_t n);

/// An edge: the activations between two layers, and their gradients, as offsets in a thread's
/// memory. If a layer works in place (overwrites its input), its input and its output are the same
/// edge.
struct CpuEdge {
  ImageLayout layout;
  std::int64_t value = 0;  ///< offset of the values in one example's activations
  /// Offset of the gradients with respect to these activations. If keeps_gradients is set, it is an
  /// offset in the array with the gradients of all examples of the thread, otherwise in the array
  /// for the current example.
  std::int64_t gradient = 0;
  /// Whether the gradients of these activations are stored for all examples that a thread processes
  /// at once; otherwise only for the current example.
  bool keeps_gradients = false;
  /// Whether the activations are a sequence of vectors, one per position of a text. If so,
  /// positions after the text's last word are not used.
  bool is_sequence = false;

  /// Returns the number of floats per example, padded to whole SIMD registers. The padding floats
  /// are zero.
  std::int64_t size() const { return padded(layout.size()); }
};

/// Sizes of the arrays that a thread has per example, and of the arrays of weights [floats]; and
/// the offset of each parameter in the arrays of weights. Each layer reserves its own part of every
/// array.
struct Storage {
  std::int64_t values = 0;  ///< floats per example of the activations
  /// Floats of the gradients with respect to activations, for the current example only.
  std::int64_t gradients = 0;
  /// Floats per example of those gradients with respect to activations that are stored for all
  /// examples that a thread processes at once (CpuEdge::keeps_gradients).
  std::int64_t kept_gradients = 0;
  /// Floats of the weights, in the order in which forward products read them.
  std::int64_t packed = 0;
  /// Floats of the second copy of the weights, in the order in which the products that compute
  /// gradients of inputs read them.
  std::int64_t transposed = 0;
  /// Floats for the whole parameter gradient of one example, for layers that store it
  /// (stores_example_gradient()).
  std::int64_t example_gradient = 0;
  /// Floats per example of the values that layers save in forward() for backward().
  std::int64_t saved = 0;
  std::int64_t numbers = 0;  ///< scratch memory of integers, for the current example
  /// Offset of each parameter in the packed and in the transposed copy of the weights. The trained
  /// parameters come first, then those of frozen layers. transposed_offset is -1 for parameters
  /// that the transposed copy does not have.
  std::vector<std::int32_t> packed_offset;
  std::vector<std::int32_t> transposed_offset;

  /// Reserves n floats in an array whose size is `size`, a member of this struct: increases `size`
  /// by n. Returns the offset of the first of these floats.
  static std::int64_t reserve(std::int64_t& size, std::int64_t n) {
    const std::int64_t first = size;
    size += n;
    return first;
  }
};

/// Position of a layer in its network, and the edges (arrays of activations) that it reads and
/// writes.
struct LayerSite {
  const Network* network = nullptr;
  const NetworkLayer* layer = nullptr;  ///< null for the input
  CpuEdge in;
  CpuEdge out;
  bool gives_input_gradient = false;  ///< whether an earlier layer is trained
  /// Whether the first layer reads table rows directly from the data set, in compact form
  /// (CodedRows). If so, it is set in the sites of both the input layer and the first layer.
  bool passes_codes = false;
};

/// Layer of the CPU backend. All threads share it, and it does not change; everything that a step
/// changes is in each thread's Workspace. The two int arguments of a pass are `first` and `count`:
/// it processes the examples first .. first + count - 1 of those in the workspace.
class CpuLayer {
 public:
  CpuLayer() = default;
  CpuLayer(const CpuLayer&) = delete;
  CpuLayer& operator=(const CpuLayer&) = delete;
  virtual ~CpuLayer() = default;

  // Properties of a layer from which build_layout() chooses the layout.

  /// Whether the layer must process one example after another. If so, all layers before it do so,
  /// too, which keeps an example's activations in the first-level cache. The layers after the last
  /// such layer process all examples of the thread together, so that weights are read once for many
  /// examples.
  virtual bool runs_per_example() const { return false; }
  /// Whether the layer stores the whole parameter gradient of one example at a time. gradient() and
  /// add() are then called for one example after the other, wherever the layer is in the network.
  virtual bool stores_example_gradient() const { return false; }
  /// Whether the layer can overwrite its input with its output, so that both have the same memory.
  virtual bool works_in_place() const { return false; }
  /// Whether backward() reads the output of this layer's forward(). If so, the next layer must not
  /// overwrite it (work in place).
  virtual bool reads_own_output() const { return false; }
  /// Whether gradient() reads a result of this layer's backward(). If so, backward() is called even
  /// for the first layer with parameters, whose input needs no gradient.
  virtual bool needs_backward() const { return false; }
  /// Minimum number of examples that a thread should process at once for this layer; with fewer,
  /// its matrix products would have too few rows to be fast. A network uses the maximum over its
  /// layers.
  virtual int min_in_flight() const { return 4; }
  /// Width of the border of zeros [pixels] that the layer needs around its input image in memory,
  /// e.g. the padding of a convolution.
  virtual int input_border() const { return 0; }
  /// Whether the layer, if it is the first one of the network, reads its input without padding
  /// channels, so that a pixel has exactly its own channels, as in the data set. Otherwise the
  /// channels of each pixel are padded to whole SIMD registers.
  virtual bool takes_unpadded_input() const { return false; }
  /// Whether the layer, if it is the first one of the network, can read table rows in compact form
  /// (CodedRows) instead of dense rows.
  virtual bool takes_codes() const { return false; }

  void lay_out(const LayerSite& site, Storage& storage) {
    site_ = site;
    reserve(storage);
  }
  /// Returns whether the layer has parameters that are trained.
  bool has_parameters() const { return site_.layer != nullptr && site_.layer->has_parameters(); }
  /// Returns whether the layer has parameters that are frozen, so constant. gradient() and add()
  /// are then not called.
  bool is_frozen() const { return site_.layer != nullptr && site_.layer->frozen; }
  /// Returns the layer's number among the layers that have trained parameters, counted from 0.
  /// Requires that this layer has trained parameters.
  int group() const { return site_.layer->group; }

  // The passes, in the order in which Worker calls them. A pass writes the padding channels of all
  // pixels that it writes, so that nothing depends on the previous content of an example's memory.

  virtual void forward(Workspace& w, int first, int count) const = 0;
  /// Computes for each example the squared norm of the gradient of the layer's parameters, and
  /// writes it to w.norm(). With coordinate-wise clipping (w.coordinates is set), computes the
  /// squared norm of the transformed gradient. Called before the layer's own backward(). Exception:
  /// if stores_example_gradient() is true and the layer is one of those that process all examples
  /// of the thread together (CpuLayout::first_together), gradient() is called after backward() of
  /// all these layers.
  virtual void gradient(Workspace&, int, int) const {}
  /// Computes the gradient of the loss with respect to the layer's input. Called only if an earlier
  /// layer is trained, or if needs_backward() is true.
  virtual void backward(Workspace&, int, int) const {}
  /// Multiplies each example's parameter gradient of this layer by the example's factor,
  /// w.factor(), and adds it to `sum`. Examples with factor 0 are skipped, because their gradients
  /// may be NaN.
  virtual void add(Workspace&, int, int, const GradientSum& sum) const { (void)sum; }

  /// For coordinate-wise clipping, which clips (gradient - m) / scale: returns the sum of (m /
  /// scale)^2 over the layer's parameters, the part of the squared norm that is the same for all
  /// examples. Returns 0 for layers that compute the norm from the whole gradient and do not need
  /// this part.
  virtual double coordinate_shift(const Coordinates&) const { return 0.0; }

 protected:
  /// Computes the layer's index tables, and reserves its part of each array that Storage describes.
  /// Called once, by lay_out(). The default is for layers that need neither.
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

/// Weights of a matrix product as they are stored in the packed copy: rows of `columns` floats,
/// followed by a bias of `columns` floats. The gradient of these weights is stored at the same
/// offsets in packed gradients.
struct PackedMatrix {
  std::int64_t offset = 0;
  int rows = 0;
  int columns = 0;

  std::int64_t bias() const { return offset + static_cast<std::int64_t>(rows) * columns; }
  std::int64_t size() const { return static_cast<std::int64_t>(rows + 1) * columns; }
  /// Reserves space in the packed weights for a matrix of rows x columns floats and a bias after
  /// it. Records in `storage` the offset of each number of the bias. The caller must record the
  /// offsets of the matrix's numbers. bias: the bias tensor, of at most `columns` numbers.
  static PackedMatrix reserve(Storage& storage, int rows, int columns, const ParameterTensor& bias);
};

/// Base class of layers that store the whole parameter gradient of an example. Its norm is computed
/// from the same rounded numbers that are later added to the sum, so rounding errors in the
/// gradient do not increase the sensitivity of the sum.
class WholeGradientLayer : public CpuLayer {
 public:
  bool stores_example_gradient() const final { return true; }
  void gradient(Workspace& w, int first, int count) const final;
  void add(Workspace& w, int first, int count, const GradientSum& sum) const final;

 protected:
  /// Reserves memory for an example's parameter gradient. A derived class must call it in
  /// reserve(). packed, size: offset and number of floats of the layer's parameters in the packed
  /// weights. storage: the memory that the layers reserve.
  void reserve_gradient(Storage& storage, std::int64_t packed, std::int64_t size) {
    packed_ = packed;
    size_ = size;
    offset_ = Storage::reserve(storage.example_gradient, size);
  }
  float* gradient_memory(Workspace& w) const;
  /// Writes one example's parameter gradient to `out`, in the order of the packed weights,
  /// including all padding. w: the memory of the thread that has the example. example: index among
  /// the examples that are processed at once.
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
