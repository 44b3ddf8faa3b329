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

/// The device, the network and the arrays of an engine. State that training changes stays on the
/// device.
struct EngineParts {
  /// large_dense: number of weights from which a dense layer uses BLAS. may_be_fused: whether sums
  /// may be computed by a fused kernel, if the network has one that fits the device.
  EngineParts(Gpu device, const Network& network, const EngineSettings& settings,
              std::int64_t large_dense, bool may_be_fused);
  EngineParts(const EngineParts&) = delete;
  EngineParts& operator=(const EngineParts&) = delete;

  /// Copies the training set to the device, or prepares streaming if its rows do not fit there.
  /// Throws InputError if it does not fit the network.
  void load(const Dataset& data);
  /// Copies a data set to the device. holds_rows: false if only its public properties are copied
  /// and the rows stay on the host.
  DeviceTrainingSet on_device(const Dataset& data, bool holds_rows = true);

  /// Sets the state of the training. Throws if an array of `s` has another size.
  void set_train_state(const TrainState& s);
  TrainState train_state() const;

  bool keeps_norms() const { return std::holds_alternative<Candidates>(settings.recipe.draw); }
  /// Returns the random stream for a purpose. Its step is 0; kernels replace it by the number of
  /// the current step (StepCursor::step).
  RandomStream stream(Stream purpose) const {
    return {settings.generator, settings.key.key(), purpose, 0};
  }

  /// Returns whether the data set's rows must stay on the host, because device memory is too small.
  /// If so, reports it to the user.
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
  Canaries canaries;
  Buffer<std::uint32_t> drawn;  ///< [examples], indices of the rows of the current batch
  /// [examples], last computed gradient norms; empty without importance sampling
  Buffer<float> norms;
  Buffer<Tally> tally;  ///< [1], sums of losses, norms and counts over all examples so far
};

}  // namespace cudp::cuda::inline CUDP_SIMT
