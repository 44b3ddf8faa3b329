#pragma once
#include "runtime/device/cuda/layers/sequence_layer.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Dense layer that is applied at every position of a text.
class CudaTokenDense final : public SequenceLayer {
 public:
  CudaTokenDense(const Dense& layer) : outputs_(layer.out) {}

  bool takes_output_function(const NetworkLayer&, const LayoutChoices&,
                             const Activate&) const override {
    return true;
  }
  bool rounds_output(const NetworkLayer&, const LayoutChoices&) const override { return true; }
  void take_output_function(const Activate& f) override { output_function_ = f; }

  void forward(MicroBatch& w) const override {
    Epilogue epilogue;
    if (output_function_) epilogue = {.kind = Epilogue::Kind::value, .function = *output_function_};
    epilogue.stored_as = output_as();
    multiply(w, true, forward_, precision_, w.value(in()), weight(w), weight(w) + tensor(1),
             w.value(out()), epilogue);
  }
  void gradient(MicroBatch& w) const override { take_norms(w); }
  void backward(MicroBatch& w) const override {
    multiply(w, false, back_, precision_, w.gradient(out()), weight(w), nullptr, w.gradient(in()),
             input_epilogue(w));
  }

  SequenceGradient sequence_gradient(const MicroBatch& w) const override {
    SequenceGradient g = no_gradient(w);
    g.add({.x = w.value(in()),
           .dy = w.gradient(out()),
           .x_example = places() * inputs(),
           .x_place = inputs(),
           .dy_example = places() * outputs_,
           .dy_place = outputs_,
           .rows = inputs(),
           .columns = outputs_,
           .weight = 0,
           .bias = tensor(1)});
    return g;
  }

 private:
  void reserve(const LayoutChoices& choices, CudaStorage& s) override {
    // In float32 positions past a text's end are multiplied too; their results are never read.
    forward_ = {.product = {.a = {strided(inputs()), strided(1), true},
                            .b = {strided(inputs()), strided(1), true},
                            .out_row = strided(outputs_),
                            .out_column = strided(1),
                            .rows_per_example = places(),
                            .terms = inputs(),
                            .columns = outputs_},
                .a_in_fours = inputs() % 4 == 0,
                .b_in_fours = inputs() % 4 == 0};
    back_ = {.product = {.a = {strided(outputs_), strided(1), true},
                         .b = {strided(1), strided(inputs()), false},
                         .out_row = strided(inputs()),
                         .out_column = strided(1),
                         .y_row = strided(inputs()),
                         .y_column = strided(1),
                         .rows_per_example = places(),
                         .terms = outputs_,
                         .columns = inputs()},
             .a_in_fours = outputs_ % 4 == 0,
             .b_in_fours = inputs() % 4 == 0};
    if (std::min(inputs(), outputs_) >= kMinTensorSide) precision_ = choices.precision;
    s.uses_tensor_cores = s.uses_tensor_cores || precision_ == Precision::tf32;
    const bool is_wide = std::min(inputs(), outputs_) >= kMinTensorUnits;
    choose_tile(s, inputs(), outputs_, is_wide ? choices.precision : Precision::fp32);
    reserve_tiles(s, tiles_of(tile(), inputs(), outputs_));
  }

  const float* weight(const MicroBatch& w) const { return w.parameters + offset(); }

  int outputs_;
  std::optional<Activate> output_function_;
  PositionsPlan forward_;
  PositionsPlan back_;
  Precision precision_ = Precision::fp32;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
