#pragma once
// A layer as the CPU runs it. Each is a file of layers/, which holds all that the CPU knows of it:
// where its numbers lie, its passes, its norms and its sums.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/layers/image.hpp"
#include "models/model.hpp"

namespace cudp::cpu {

class Workspace;
struct Coordinates;

/// The sums that layers add gradients to, [Storage::packed]: clipped ones, each number rounded by
/// itself, or a single example's as it is.
struct GradientSum {
  std::int32_t* units = nullptr;
  float inverse_grid = 0.0f;  ///< a power of two
  float* plain = nullptr;     ///< in place of units
};

/// Most examples in flight.
inline constexpr int kMaxChunk = 64;

/// Columns come in blocks of as many floats, the widest vector.
inline constexpr int kColumnBlock = 16;
inline std::int64_t padded(std::int64_t n) {
  return (n + kColumnBlock - 1) / kColumnBlock * kColumnBlock;
}

/// Throws Error where 32 bits do not hold n.
std::int32_t narrow(std::int64_t n);

/// The activations between two layers. A layer that works in place has the same edge before and
/// after.
struct CpuEdge {
  ImageLayout layout;
  std::int64_t value = 0;        ///< offset in one example's activations
  std::int64_t gradient = 0;     ///< offset in the gradients, of one example or of all
  bool keeps_gradients = false;  ///< of every example in flight; else of the one at work
  bool is_sequence = false;      ///< only a text's own words are written and read

  /// Floats, in whole blocks: zero beyond the layout's own size (CpuLayout::zeros).
  std::int64_t size() const { return padded(layout.size()); }
};

/// How many floats a network takes, and where its parameters are packed. Layers reserve their own.
struct Storage {
  std::int64_t values = 0;            ///< an example: activations
  std::int64_t gradients = 0;         ///< by the activations, of the example at work
  std::int64_t kept_gradients = 0;    ///< an example: those of edges that keep them
  std::int64_t packed = 0;            ///< weights in the order that products read them
  std::int64_t transposed = 0;        ///< the same for input gradients
  std::int64_t example_gradient = 0;  ///< gradients that exist as a whole, of the example at work
  std::int64_t saved = 0;             ///< an example: what forward() leaves for backward()
  std::int64_t numbers = 0;           ///< whole numbers, of the example at work
  /// [d], parameter -> offset in the packed weights; and in the transposed ones, -1 for none.
  std::vector<std::int32_t> where;
  std::vector<std::int32_t> where_transposed;

  /// Adds n floats to one of the sizes above and returns the offset of the first.
  static std::int64_t reserve(std::int64_t& size, std::int64_t n) {
    const std::int64_t first = size;
    size += n;
    return first;
  }
};

/// The place of a layer in its network.
struct LayerSite {
  const Network* network = nullptr;
  const NetworkLayer* layer = nullptr;  ///< null for the input
  CpuEdge in;
  CpuEdge out;
  bool gives_input_gradient = false;  ///< a layer before it has parameters
  /// Coded rows pass from the data set to the first layer as they are: both know it.
  bool passes_codes = false;
};

/// Shared by all workers and the same for all steps: what changes is in the Workspace. Passes are
/// called with examples [first, first + count) of those in flight.
class CpuLayer {
 public:
  CpuLayer() = default;
  CpuLayer(const CpuLayer&) = delete;
  CpuLayer& operator=(const CpuLayer&) = delete;
  virtual ~CpuLayer() = default;

  // What it asks of the layout.

  /// It, and all layers before it, pass over one example after the other, whose numbers then stay
  /// in the first-level cache. The layers after the last of these pass over all examples in flight,
  /// so that weights are read once for many.
  virtual bool runs_by_example() const { return false; }
  /// Its gradient exists as a whole, of one example at a time: gradient() and add() are called for
  /// one example after the other wherever it stands.
  virtual bool adds_by_example() const { return false; }
  virtual bool works_in_place() const { return false; }
  /// backward() reads what forward() wrote, so the next layer must not work in place.
  virtual bool reads_own_output() const { return false; }
  /// gradient() reads what backward() makes, which is then called whatever comes before.
  virtual bool needs_backward() const { return false; }
  /// Fewer examples at a time would leave its products too few rows.
  virtual int min_in_flight() const { return 4; }
  virtual int input_border() const { return 0; }
  /// It takes a data set's pixels as they are, without channels of padding.
  virtual bool takes_unpadded_input() const { return false; }
  /// Behind the input it takes rows of a table by their codes (kernels/common/coded_rows.hpp).
  virtual bool takes_codes() const { return false; }

  void lay_out(const LayerSite& site, Storage& storage) {
    site_ = site;
    reserve(storage);
  }
  bool has_parameters() const { return site_.layer != nullptr && site_.layer->has_parameters(); }
  /// See NetworkLayer::group. Of layers with parameters alone.
  int group() const { return site_.layer->group; }

  // The passes, in this order; see Worker. A pass writes the padding channels of all pixels that it
  // writes: nothing may depend on what was in an example's memory before.

  virtual void forward(Workspace& w, int first, int count) const = 0;
  /// The squared norms of the parameters' gradients to w.norm(), after the transform that
  /// w.coordinates asks for. Before backward() where the layer passes over single examples, or is
  /// added together; else after all layers' backward().
  virtual void gradient(Workspace&, int, int) const {}
  /// The gradient by the input. Only where a layer before has parameters, or needs_backward().
  virtual void backward(Workspace&, int, int) const {}
  /// sum += w.factor() times the parameters' gradients, leaving out examples with factor 0: their
  /// numbers may be NaN.
  virtual void add(Workspace&, int, int, const GradientSum& sum) const { (void)sum; }

  /// c of dense_square (kernels/contribution/coordinates_math.hpp), for layers that need it.
  virtual double coordinate_shift(const Coordinates&) const { return 0.0; }

 protected:
  /// Makes the layer's tables, and reserves what it needs.
  virtual void reserve(Storage&) {}

  const CpuEdge& in() const { return site_.in; }
  const CpuEdge& out() const { return site_.out; }
  bool gives_input_gradient() const { return site_.gives_input_gradient; }
  bool passes_codes() const { return site_.passes_codes; }
  /// The i-th of the layer's tensors.
  const ParameterTensor& parameter(std::size_t i) const {
    return site_.network->parameters[site_.layer->first_parameter + i];
  }

 private:
  LayerSite site_;
};

/// Weights of a product: rows of `columns` floats, then a bias of `columns` floats. The same
/// offsets serve the packed weights and their packed gradients.
struct PackedMatrix {
  std::int64_t offset = 0;
  int rows = 0;
  int columns = 0;

  std::int64_t bias() const { return offset + static_cast<std::int64_t>(rows) * columns; }
  std::int64_t size() const { return static_cast<std::int64_t>(rows + 1) * columns; }
  /// Reserves it and places the bias, a tensor of at most `columns` numbers.
  static PackedMatrix reserve(Storage& storage, int rows, int columns, const ParameterTensor& bias);
};

/// A layer whose parameters' gradient is made as a whole. The numbers that are squared are the ones
/// that are added, so no rounding in them can make an example add more than its norm allows.
class WholeGradientLayer : public CpuLayer {
 public:
  bool adds_by_example() const final { return true; }
  void gradient(Workspace& w, int first, int count) const final;
  void add(Workspace& w, int first, int count, const GradientSum& sum) const final;

 protected:
  /// To be called by reserve(), with where the parameters are packed.
  void reserve_gradient(Storage& storage, std::int64_t packed, std::int64_t size) {
    packed_ = packed;
    size_ = size;
    offset_ = Storage::reserve(storage.example_gradient, size);
  }
  /// Writes one example's gradient, packed as the weights are, with all its padding.
  virtual void make_gradient(Workspace& w, int example, float* out) const = 0;

 private:
  std::int64_t packed_ = 0;
  std::int64_t size_ = 0;
  std::int64_t offset_ = 0;
};

// The layers: one line here and a file in layers/ for each.
std::unique_ptr<CpuLayer> make_input();
std::unique_ptr<CpuLayer> make_layer(const Conv2d& layer);
std::unique_ptr<CpuLayer> make_layer(const Dense& layer);
std::unique_ptr<CpuLayer> make_token_dense(const Dense& layer);  ///< per_token
std::unique_ptr<CpuLayer> make_layer(const MaxPool2d& layer);
std::unique_ptr<CpuLayer> make_layer(const AvgPool2d& layer);
std::unique_ptr<CpuLayer> make_layer(const GroupNorm& layer);
std::unique_ptr<CpuLayer> make_layer(const Activate& layer);
std::unique_ptr<CpuLayer> make_layer(const Embedding& layer);
std::unique_ptr<CpuLayer> make_layer(const Recurrent& layer);
std::unique_ptr<CpuLayer> make_layer(const MeanOverTime& layer);

}  // namespace cudp::cpu
