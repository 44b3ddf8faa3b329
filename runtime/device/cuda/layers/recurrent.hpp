#pragma once
#include <algorithm>
#include <string>

#include "kernels/layers/recurrent_batch.cuh"
#include "kernels/layers/recurrent_half.cuh"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/launch.hpp"
#include "runtime/device/cuda/layers/sequence_layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// LSTM or GRU layer. One matrix product computes W x for all positions of the texts and both
/// directions; one launch then runs all time steps. Backward: one launch runs all time steps, then
/// one product computes the gradient of the input.
class CudaRecurrent final : public SequenceLayer {
 public:
  CudaRecurrent(const Recurrent& layer) : layer_(layer) {}

  /// Prepares the layer's kernels. Call before a step is recorded. Throws InputError if the layer
  /// needs more shared memory than a block may have. gpu: the device.
  void prepare(Gpu& gpu) const override {
    if (by_library_) {
      gpu.prepare_dnn();
      return;
    }
    for (const bool back : {false, true}) {
      const device::RecurrentPlan widest = plan(gpu.limits(), back, 1 << 30);
      if (widest.examples == 0)
        throw InputError("--device: expected cpu, since a recurrent layer of " +
                         std::to_string(layer_.hidden) +
                         " units needs more shared memory than this device has, found cuda");
      gpu.allow_shared(kernel(back), gpu.limits().shared_bytes);
    }
  }

  void forward(MicroBatch& w) const override {
    if (by_library_) {
      recur_by_library(w);
      return;
    }
    multiply(w, true, input_product_, precision_, w.value(in()), weights(w), nullptr,
             w.saved(gates_));
    device::RecurrentPass pass = pass_of(w, false);
    pass.out = w.value(out());
    pass.planes = out().value;
    launch(w.gpu, "recurrent", kernel(false), pass);
  }

  bool backward_needs_gradient() const override { return true; }

  /// Runs all backward steps, which compute the gradients with respect to the gates, then computes
  /// the squared norms of the parameters' gradients. w: the micro-batch.
  void gradient(MicroBatch& w) const override {
    device::RecurrentPass pass = pass_of(w, true);
    pass.out = w.gradient(out());
    pass.planes = out().gradient;
    launch(w.gpu, "recurrent gradient", kernel(true), pass);
    take_norms(w);
  }

  void backward(MicroBatch& w) const override {
    multiply(w, false, back_, precision_, w.saved(gates_), weights(w), nullptr, w.gradient(in()),
             input_epilogue(w));
  }

  /// Returns the arguments of the kernels that compute the gradients of the weights of inputs and
  /// of states, for each direction. In a GRU the last gate has two gradients, one for the weights
  /// of inputs and one for those of states. w: the micro-batch.
  SequenceGradient sequence_gradient(const MicroBatch& w) const override {
    SequenceGradient g = no_gradient(w);
    const int units = layer_.hidden;
    for (int d = 0; d < layer_.directions(); ++d) {
      const float* const deltas = w.saved(gates_) + std::int64_t{4} * d * units;
      const SequencePart of_gates{
          .dy = deltas, .dy_example = places() * gates_place(), .dy_place = gates_place()};
      SequencePart of_inputs = of_gates;
      of_inputs.x = w.value(in());
      of_inputs.x_example = places() * inputs();
      of_inputs.x_place = inputs();
      of_inputs.rows = inputs();
      of_inputs.columns = layer_.gates() * units;
      of_inputs.weight = tensor(first_tensor(d));
      of_inputs.bias = tensor(first_tensor(d) + 2);
      g.add(of_inputs);
      SequencePart of_states = of_gates;
      of_states.x = w.saved(h_) + std::int64_t{d} * units;
      of_states.x_place = layer_.directions() * units;
      of_states.x_example = places() * of_states.x_place;
      of_states.x_shift = d == 0 ? -1 : 1;  // the previous step is at the next position
      of_states.rows = units;
      of_states.columns = is_lstm() ? 4 * units : 2 * units;
      of_states.weight = tensor(first_tensor(d) + 1);
      of_states.bias = is_lstm() ? -1 : tensor(first_tensor(d) + 3);
      g.add(of_states);
      if (is_lstm()) continue;
      of_states.dy = deltas + std::int64_t{3} * units;
      of_states.columns = units;
      of_states.weight += 2 * units * units;
      of_states.bias += 2 * units;
      g.add(of_states);
    }
    return g;
  }

 private:
  /// Runs all steps by cuDNN. From the states that cuDNN returns it computes the layer's output:
  /// all states, the last state, or the mean of the states over a text's words. w: the micro-batch.
  void recur_by_library(MicroBatch& w) const {
    const bool is_sequence = layer_.output == RecurrentOutput::sequence;
    const auto weights_of = [&](int d) {
      const device::RecurrentWeights r = direction(w, d);
      return DirectionWeights{.inputs = weights(w) + tensor(first_tensor(d)),
                              .states = r.states,
                              .bias = r.bias,
                              .state_bias = r.state_bias};
    };
    float* const y = is_sequence ? w.value(out()) : w.library_scratch();
    w.gpu.recur({.x = w.value(in()),
                 .length = w.lengths(),
                 .forth = weights_of(0),
                 .reverse = layer_.bidirectional ? weights_of(1) : DirectionWeights{},
                 .y = y,
                 .examples = w.batch.capacity,
                 .places = places(),
                 .inputs = inputs(),
                 .hidden = layer_.hidden,
                 .directions = layer_.directions(),
                 .is_lstm = is_lstm(),
                 .precision = step_precision_});
    if (is_sequence) return;
    launch(w.gpu, "states of texts", text_states_kernel,
           device::TextStates{.batch = w.batch,
                              .length = w.lengths(),
                              .places = places(),
                              .hidden = layer_.hidden,
                              .directions = layer_.directions(),
                              .output = states_out(),
                              .y = y,
                              .out = w.value(out()),
                              .planes = out().value});
  }

  void reserve(const LayoutChoices& choices, CudaStorage& s) override {
    const int units = layer_.hidden;
    const int lines = layer_.directions() * places();
    gates_ = CudaStorage::reserve(s.saved, 4 * std::int64_t{lines} * units);
    h_ = CudaStorage::reserve(s.saved, std::int64_t{lines} * units);
    if (is_lstm()) c_ = CudaStorage::reserve(s.saved, std::int64_t{lines} * units);
    by_library_ = choices.evaluates_by_library;
    if (by_library_ && layer_.output != RecurrentOutput::sequence)
      s.library_scratch = std::max(s.library_scratch, std::int64_t{lines} * units);
    plan_products(s);
    if (units >= kMinTensorUnits) step_precision_ = choices.precision;
    if (inputs() >= kMinTensorUnits) precision_ = step_precision_;
    const int gates = layer_.gates() * units;
    choose_tile(s, std::max(inputs(), units), gates, step_precision_);
    const int states = is_lstm()
                           ? tiles_of(tile(), units, gates)
                           : tiles_of(tile(), units, 2 * units) + tiles_of(tile(), units, units);
    reserve_tiles(s, layer_.directions() * (tiles_of(tile(), inputs(), gates) + states));
  }

  void plan_products(CudaStorage& s) {
    const int gates = layer_.gates() * layer_.hidden;
    const int columns = layer_.directions() * gates;
    // The product has a column for each gate of each hidden unit and direction. With `gates`
    // columns per direction, column k belongs to direction k / gates, and is row k % gates of that
    // direction's weight matrix.
    const auto row_of_weight = [&](int k) {
      return std::int64_t{tensor(first_tensor(k / gates))} + std::int64_t{k % gates} * inputs();
    };
    const auto place_of_gate = [&](int k) { return k / gates * 4 * layer_.hidden + k % gates; };
    const AxisPlan weight =
        layer_.bidirectional ? s.table(columns, row_of_weight) : strided(inputs());
    const AxisPlan gate = is_lstm() ? strided(1) : s.table(columns, place_of_gate);
    // Weights of all directions are rows of whole fours, and begin at one.
    const bool weights_in_fours =
        (inputs() | tensor(first_tensor(0)) | tensor(first_tensor(layer_.directions() - 1))) % 4 ==
        0;
    input_product_ = {.product = {.a = {strided(inputs()), strided(1), true},
                                  .b = {weight, strided(1), true},
                                  .out_row = strided(gates_place()),
                                  .out_column = gate,
                                  .rows_per_example = places(),
                                  .terms = inputs(),
                                  .columns = columns},
                      .a_in_fours = inputs() % 4 == 0,
                      .b_in_fours = weights_in_fours};
    back_ = {.product = {.a = {strided(gates_place()), gate, true},
                         .b = {strided(1), weight, false},
                         .out_row = strided(inputs()),
                         .out_column = strided(1),
                         .y_row = strided(inputs()),
                         .y_column = strided(1),
                         .rows_per_example = places(),
                         .terms = columns,
                         .columns = inputs()},
             .a_in_fours = gates % 4 == 0,
             .b_in_fours = weights_in_fours};
  }

  device::RecurrentPass pass_of(const MicroBatch& w, bool back) const {
    return {.batch = w.batch,
            .length = w.lengths(),
            .places = places(),
            .hidden = layer_.hidden,
            .directions = layer_.directions(),
            .output = states_out(),
            .forth = direction(w, 0),
            .reverse = layer_.bidirectional ? direction(w, 1) : device::RecurrentWeights{},
            .plan = plan(w.gpu.limits(), back, w.batch.capacity),
            .gates = w.saved(gates_),
            .c = is_lstm() ? w.saved(c_) : nullptr,
            .h = w.saved(h_),
            .out = nullptr,
            .planes = {},
            .logit_gradients = w.logit_gradients(),
            .outputs = w.outputs()};
  }
  device::RecurrentWeights direction(const MicroBatch& w, int d) const {
    const std::size_t first = first_tensor(d);
    return {.states = weights(w) + tensor(first + 1),
            .bias = weights(w) + tensor(first + 2),
            .state_bias = is_lstm() ? nullptr : weights(w) + tensor(first + 3)};
  }
  device::RecurrentPlan plan(const DeviceLimits& limits, bool back, int capacity) const {
    const auto plan_of = has_tensor_steps() ? device::half_recurrent_plan : device::recurrent_plan;
    return plan_of(layer_.gates(), layer_.hidden, back, layer_.directions(), capacity, limits);
  }
  void (*kernel(bool back) const)(device::RecurrentPass) {
    if (has_tensor_steps())
      return is_lstm() ? half_kernel<LstmCell>(back) : half_kernel<GruCell>(back);
    if (back)
      return is_lstm() ? recurrent_backward_kernel<LstmCell> : recurrent_backward_kernel<GruCell>;
    return is_lstm() ? recurrent_kernel<LstmCell> : recurrent_kernel<GruCell>;
  }

  template <class C>
  void (*half_kernel(bool back) const)(device::RecurrentPass) {
    if (layer_.hidden > device::kResidentUnits)
      return back ? half_recurrent_backward_kernel<C, false> : half_recurrent_kernel<C, false>;
    return back ? half_recurrent_backward_kernel<C, true> : half_recurrent_kernel<C, true>;
  }

  /// Returns the index of the first tensor of direction d; they are weight_ih, weight_hh, bias_ih
  /// and, for a GRU, bias_hh.
  std::size_t first_tensor(int d) const {
    return static_cast<std::size_t>(d) * (is_lstm() ? 3 : 4);
  }
  const float* weights(const MicroBatch& w) const { return w.parameters + offset(); }
  device::StatesOut states_out() const {
    return layer_.output == RecurrentOutput::last   ? device::StatesOut::last
           : layer_.output == RecurrentOutput::mean ? device::StatesOut::mean
                                                    : device::StatesOut::sequence;
  }
  bool has_tensor_steps() const { return step_precision_ == Precision::tf32; }
  bool is_lstm() const { return layer_.cell == Cell::lstm; }
  /// Distance in memory between the gates of one position of a text and those of the next [floats].
  int gates_place() const { return layer_.directions() * 4 * layer_.hidden; }

  Recurrent layer_;
  bool by_library_ = false;
  PositionsPlan input_product_;
  PositionsPlan back_;
  Precision step_precision_ =
      Precision::fp32;                     ///< precision of the steps and of the weights' gradients
  Precision precision_ = Precision::fp32;  ///< precision of the two products with W
  /// Offset, among the values saved for the backward pass, of the gates of all steps, [T,
  /// directions, 4, hidden].
  std::int64_t gates_ = 0;
  std::int64_t h_ = 0;  ///< offset of the saved states, [T, directions, hidden]
  /// Offset, among the values saved for the backward pass, of an LSTM's cell states, [T,
  /// directions, hidden].
  std::int64_t c_ = 0;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
