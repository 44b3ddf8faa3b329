#pragma once
// Interface of a layer of the CUDA engine. Each kind is a file of layers/, which contains
// everything that the CUDA engine knows about that kind.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/common/fixed_point.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/contribution/coordinates.hpp"
#include "models/model.hpp"
#include "runtime/device/cuda/micro_batch.hpp"
#include "runtime/device/cuda/plans.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Position of a layer in its network, the edges (arrays of activations) that it reads and writes,
/// and the precision in which it stores its output.
struct CudaSite {
  const Network* network = nullptr;
  const NetworkLayer* layer = nullptr;  ///< null for the input
  CudaEdge in;
  CudaEdge out;
  bool gives_input_gradient = false;      ///< whether an earlier layer has parameters
  Precision output_as = Precision::fp32;  ///< whether its output is rounded to TF32
  Precision input_gradient_as = Precision::fp32;
};

/// Layer of the CUDA engine. Its functions launch kernels that process all examples of a
/// micro-batch.
class CudaLayer {
 public:
  CudaLayer() = default;
  CudaLayer(const CudaLayer&) = delete;
  CudaLayer& operator=(const CudaLayer&) = delete;
  virtual ~CudaLayer() = default;

  // Properties of a layer from which build_layout() chooses the layout.

  /// Whether the layer can overwrite its input with its output, so that both have the same memory.
  virtual bool works_in_place() const { return false; }
  /// Whether backward() reads the output of this layer's forward(). If so, the next layer must not
  /// overwrite it (work in place).
  virtual bool reads_own_output() const { return false; }
  /// Width of the border of zeros [pixels] that the layer needs around its input image in memory,
  /// e.g. the padding of a convolution.
  virtual int input_border() const { return 0; }
  /// Returns the width of the border of zeros [pixels] that must surround the gradient of the
  /// layer's output, so that the layer can compute the gradient of its input.
  virtual int gradient_border(const NetworkLayer&) const { return 0; }

  // If a layer's passes have an epilogue (kernels/layers/epilogue.hpp), an adjacent activation is
  // computed in that epilogue.

  /// Whether forward() can also apply the activation function of the layer after this one to its
  /// output, so that no kernel is launched for that activation layer.
  virtual bool takes_output_function(const NetworkLayer&, const LayoutChoices&,
                                     const Activate&) const {
    return false;
  }
  virtual void take_output_function(const Activate&) {}
  /// Whether backward() can also multiply the gradient of the layer's input by the derivative of
  /// the activation layer before this one, so that no kernel is launched for that activation layer.
  virtual bool takes_input_function(const NetworkLayer&, const LayoutChoices&) const {
    return false;
  }
  virtual void take_input_function(const Activate&) {}
  // Called on an activation layer to switch off one of its passes. skip_forward() is called if the
  // layer before it applies the activation function to its own output. skip_backward() is called if
  // the layer after it multiplies its own input gradient by the activation's derivative.
  virtual void skip_forward() {}
  virtual void skip_backward() {}

  // Values that tensor cores multiply are rounded to TF32 once, when they are stored; see
  // round_edges in layout.cpp.

  /// Whether the kernels of forward() and backward() require that the layer's input, and the
  /// gradient of its output, have been rounded to TF32 when they were written to memory.
  virtual bool reads_rounded(const NetworkLayer&, const LayoutChoices&) const { return false; }
  /// Whether forward() can round the layer's output to TF32 when it writes it.
  virtual bool rounds_output(const NetworkLayer&, const LayoutChoices&) const { return false; }
  /// Whether gradient() or backward() can round the gradient of the layer's input to TF32 when it
  /// writes it.
  virtual bool rounds_input_gradient(const NetworkLayer&, const LayoutChoices&) const {
    return false;
  }
  virtual bool writes_output() const { return true; }
  virtual bool writes_input_gradient() const { return true; }

  /// Used in coordinate-wise clipping, which clips (gradient - m) / scale. The shift of a layer is
  /// the squared norm of m / scale over its parameters. A layer whose gradient() needs its shift
  /// adds itself to the given list; the shifts of all layers in the list are computed whenever m or
  /// scale changes. The default is for layers that do not need it.
  virtual void note_shift(LayerShifts&) const {}

  void lay_out(const CudaSite& site, const LayoutChoices& choices, CudaStorage& storage) {
    site_ = site;
    reserve(choices, storage);
  }
  bool gives_input_gradient() const { return site_.gives_input_gradient; }
  bool is_frozen() const { return site_.layer != nullptr && site_.layer->frozen; }
  /// Whether backward() reads a result of gradient(). If so, gradient() is called for a frozen
  /// layer, too.
  virtual bool backward_needs_gradient() const { return false; }

  /// Whether forward() and backward() use the device's BLAS.
  virtual bool uses_blas() const { return false; }

  // The passes of a layer.

  /// Loads the libraries and sets the kernel attributes that forward(), backward() etc. need. Call
  /// it before a step is recorded as a CUDA graph.
  virtual void prepare(Gpu&) const {}
  virtual void forward(MicroBatch& w) const = 0;
  /// Writes the squared norms of each example's gradient of the layer's parameters to w.parts(), as
  /// partial sums. If w.coordinates is set, the gradients are first transformed (coordinate-wise
  /// clipping). Call it before backward().
  virtual void gradient(MicroBatch&) const {}
  /// Computes the gradient of the loss with respect to the layer's input. Called only if an earlier
  /// layer has trained parameters.
  virtual void backward(MicroBatch&) const {}
  /// Adds the clipped gradients of the micro-batch's examples to sum [d], as integer multiples of
  /// the sum's grid (scale->grid).
  virtual void add(MicroBatch&, FixedPoint*, const SumScale*) const {}
  /// Writes each example's unclipped gradient of this layer's parameters to a matrix [capacity, d],
  /// at the example's row and the parameters' columns.
  virtual void store_gradients(MicroBatch&, float*) const {}

 protected:
  /// Builds the index tables and kernel arguments of the layer, and reserves the memory that it
  /// needs.
  virtual void reserve(const LayoutChoices&, CudaStorage&) {}

  const CudaEdge& in() const { return site_.in; }
  const CudaEdge& out() const { return site_.out; }
  Precision output_as() const { return site_.output_as; }
  Precision input_gradient_as() const { return site_.input_gradient_as; }
  const NetworkLayer& layer() const { return *site_.layer; }
  int group() const { return site_.layer->group; }
  /// Reserves n partial sums of the squared norm of the layer's gradient, and returns the index of
  /// the first one. If the layer is frozen, they are in memory that is written but never read.
  std::int32_t reserve_parts(CudaStorage& s, int n) const {
    return is_frozen() ? s.reserve_unread_parts(n) : s.reserve_parts(n);
  }
  std::int64_t network_parameters() const {
    return static_cast<std::int64_t>(site_.network->parameter_count);
  }
  /// Returns the index of the layer's first parameter among the parameters of the network.
  std::int64_t offset() const { return offset_of(0); }
  /// Returns the index of the first number of the layer's i-th tensor among the parameters of the
  /// network.
  std::int64_t offset_of(std::size_t i) const {
    return static_cast<std::int64_t>(parameter_tensor(i).offset);
  }
  const std::vector<int>& tensor_shape(std::size_t i) const { return parameter_tensor(i).shape; }
  std::int64_t parameter_count() const {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < layer().parameter_count; ++i)
      n += static_cast<std::int64_t>(parameter_tensor(i).size);
    return n;
  }

 private:
  const ParameterTensor& parameter_tensor(std::size_t i) const {
    return site_.network->tensor(layer(), i);
  }

  CudaSite site_;
};

std::unique_ptr<CudaLayer> make_input();
/// Makes the object that computes a layer of a network in the CUDA engine. lay_out() must be called
/// on it before forward(), gradient(), backward() and add().
std::unique_ptr<CudaLayer> make_layer(const Layer& layer);

}  // namespace cudp::cuda::inline CUDP_SIMT
