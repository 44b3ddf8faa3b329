#pragma once
// Objects that all parts of an engine share.
#include <cstdint>
#include <optional>
#include <variant>

#include "runtime/data/numbering.hpp"
#include "runtime/device/canaries.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/fused.hpp"
#include "runtime/device/cuda/layer_wise.hpp"
#include "runtime/device/cuda/model_state.hpp"
#include "runtime/device/cuda/row_stream.hpp"
#include "runtime/device/cuda/run_position.hpp"
#include "runtime/device/cuda/sample.hpp"
#include "runtime/device/cuda/step_end.hpp"
#include "runtime/device/cuda/training_set.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The parts that the classes of a CUDA engine share: the device, the network and the engine's
/// arrays. State that training changes stays on the device.
struct EngineParts {
  /// Makes the parts of an engine for a network. large_dense: minimum number of weights for which a
  /// dense layer uses BLAS. may_be_fused: whether a fused kernel (the whole network in one launch)
  /// may compute the sums, if there is one for the network that fits the device.
  EngineParts(Gpu device, const Network& network, const EngineSettings& settings,
              std::int64_t large_dense, bool may_be_fused);
  ~EngineParts() = default;
  EngineParts(const EngineParts&) = delete;
  EngineParts& operator=(const EngineParts&) = delete;

  /// Copies the training set to the device. If its rows do not fit into device memory, prepares to
  /// stream them from the host instead. Throws InputError if the examples do not have the network's
  /// input shape.
  void load(const Dataset& data);
  /// Copies a data set to the device and returns the copy. holds_rows: if false, only public
  /// properties such as class weights are copied, and the rows stay on the host.
  DeviceTrainingSet on_device(const Dataset& data, bool holds_rows = true);

  /// Sets the state of the training: parameters, optimizer state and stored norms. Throws Error if
  /// an array of `s` does not have the expected size.
  void set_train_state(const TrainState& s);
  TrainState train_state() const;

  bool keeps_norms() const { return std::holds_alternative<Candidates>(settings.recipe.draw); }
  /// Returns the random stream for a purpose, such as noise or sampling. Its step number is 0;
  /// kernels replace it with the number of the current step.
  RandomStream stream(Stream purpose) const {
    return {settings.generator, settings.key.key(), purpose, 0};
  }

  /// Returns whether the rows of the data set must stay on the host because device memory is too
  /// small for them. If so, tells the user.
  bool must_stream(const Dataset& data) const;

  Gpu gpu;
  Network network;
  EngineSettings settings;
  LayerWiseNetwork passes;
  std::optional<FusedNetwork> fused;
  DeviceModelState state;
  RunPosition position;
  StepEnd end;
  DeviceTrainingSet train;
  std::optional<RowStream> streamed;   ///< source of the rows of `train` that do not fit the device
  std::optional<Numbering> numbering;  ///< sampling index of each training example
  Buffer<std::uint32_t> index;         ///< Numbering::index()
  SampleScratch sample;
  AllocatedEpochs allocated;  ///< without examples, unless draws are by random allocation
  Canaries canaries;
  Buffer<std::uint32_t> drawn;  ///< [examples], indices of the rows of the current batch
  /// Norm of each example's gradient when it was last computed, [examples]; empty unless importance
  /// sampling is used.
  Buffer<float> norms;
  Buffer<Tally> tally;  ///< [1], sums of losses, norms and counts over all examples so far
};

}  // namespace cudp::cuda::inline CUDP_SIMT
