#pragma once
// A layer as a device runs it. Each is a file of layers/, which holds all that the CUDA engine
// knows of it.
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

/// The place of a layer in its network.
struct CudaSite {
  const Network* network = nullptr;
  const NetworkLayer* layer = nullptr;  ///< null for the input
  CudaEdge in;
  CudaEdge out;
  bool gives_input_gradient = false;      ///< a layer before it has parameters
  Precision output_as = Precision::fp32;  ///< as what it is to store it
  Precision input_gradient_as = Precision::fp32;
};

class CudaLayer {
 public:
  CudaLayer() = default;
  CudaLayer(const CudaLayer&) = delete;
  CudaLayer& operator=(const CudaLayer&) = delete;
  virtual ~CudaLayer() = default;

  // What it asks of the layout.

  virtual bool works_in_place() const { return false; }
  /// backward() reads what forward() wrote, so the next layer must not work in place.
  virtual bool reads_own_output() const { return false; }
  virtual int input_border() const { return 0; }
  /// The border of its output's gradient, where it gives an input gradient.
  virtual int gradient_border(const NetworkLayer&) const { return 0; }

  // An activation beside a layer whose passes can have an epilogue needs none of its own.

  /// forward() can write a function of what it made.
  virtual bool takes_output_function(const NetworkLayer&, const LayoutChoices&,
                                     const Activate&) const {
    return false;
  }
  virtual void take_output_function(const Activate&) {}
  /// Its input is a function of what the layer before wrote: backward() can write the gradient by
  /// that.
  virtual bool takes_input_function(const NetworkLayer&, const LayoutChoices&) const {
    return false;
  }
  virtual void take_input_function(const Activate&) {}
  // Of an activation: the layer before applies the function, the one behind its derivative, and the
  // pass does nothing.
  virtual void leave_forward() {}
  virtual void leave_backward() {}

  // Numbers that tensor cores multiply are rounded once, where they are stored; see round_edges.

  /// Its passes take its input and its output's gradient as TF32.
  virtual bool reads_rounded(const NetworkLayer&, const LayoutChoices&) const { return false; }
  /// forward() writes its output, and can round it.
  virtual bool rounds_output(const NetworkLayer&, const LayoutChoices&) const { return false; }
  /// The same of its input's gradient, by gradient() or backward().
  virtual bool rounds_input_gradient(const NetworkLayer&, const LayoutChoices&) const {
    return false;
  }
  virtual bool writes_output() const { return true; }
  virtual bool writes_input_gradient() const { return true; }

  /// Adds what gradient() needs the sum of, of new coordinates.
  virtual void note_shift(LayerShifts&) const {}

  void lay_out(const CudaSite& site, const LayoutChoices& choices, CudaStorage& storage) {
    site_ = site;
    reserve(choices, storage);
  }
  bool gives_input_gradient() const { return site_.gives_input_gradient; }

  /// Goes forward and back by the device's BLAS.
  virtual bool uses_blas() const { return false; }

  // The passes.

  /// What its kernels need before anything is recorded.
  virtual void prepare(Gpu&) const {}
  virtual void forward(MicroBatch& w) const = 0;
  /// The squared norms of the parameters' gradients to w.parts(), transformed by w.coordinates;
  /// before backward().
  virtual void gradient(MicroBatch&) const {}
  /// The gradient by the input, only where a layer before has parameters.
  virtual void backward(MicroBatch&) const {}
  /// sum [d] += the clipped gradients.
  virtual void add(MicroBatch&, FixedPoint*, const SumScale*) const {}
  /// Each example's own gradient to gradients [capacity, d].
  virtual void store_gradients(MicroBatch&, float*) const {}

 protected:
  /// Makes the layer's tables, and reserves what it needs.
  virtual void reserve(const LayoutChoices&, CudaStorage&) {}

  const CudaEdge& in() const { return site_.in; }
  const CudaEdge& out() const { return site_.out; }
  Precision output_as() const { return site_.output_as; }
  Precision input_gradient_as() const { return site_.input_gradient_as; }
  const NetworkLayer& layer() const { return *site_.layer; }
  int group() const { return site_.layer->group; }
  std::int64_t network_parameters() const {
    return static_cast<std::int64_t>(site_.network->parameter_count);
  }
  /// The place of its parameters in the network's.
  std::int64_t offset() const {
    return static_cast<std::int64_t>(site_.network->parameters[layer().first_parameter].offset);
  }
  /// The place of its i-th tensor in the network's parameters.
  std::int64_t offset_of(std::size_t i) const {
    return static_cast<std::int64_t>(parameter_tensor(i).offset);
  }
  const std::vector<int>& tensor_shape(std::size_t i) const { return parameter_tensor(i).shape; }
  /// Numbers in all its tensors.
  std::int64_t parameter_count() const {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < layer().parameter_count; ++i)
      n += static_cast<std::int64_t>(parameter_tensor(i).size);
    return n;
  }

 private:
  const ParameterTensor& parameter_tensor(std::size_t i) const {
    return site_.network->parameters[layer().first_parameter + i];
  }

  CudaSite site_;
};

std::unique_ptr<CudaLayer> make_input();
/// Of every kind, with no more than it was made of: lay_out() comes before its passes.
std::unique_ptr<CudaLayer> make_layer(const Layer& layer);

}  // namespace cudp::cuda::inline CUDP_SIMT
