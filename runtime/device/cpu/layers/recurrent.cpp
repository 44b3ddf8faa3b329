#include <algorithm>
#include <array>

#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

/// LSTM or GRU layer on the CPU. First the products of the weights with the inputs are computed for
/// all positions of the texts. Then all examples that the thread processes take each time step
/// together. They are ordered by decreasing length of their texts, so that the examples that are
/// long enough for a step are the first rows of its matrix product. No result of an example depends
/// on the other examples.
///
/// Values are stored in the order of the time steps; the two directions differ only in the text
/// position that a step reads and writes. The backward pass overwrites the gates with their
/// gradients. The gates of a step are four blocks of `units_` numbers: for an LSTM i, f, g and o
/// (input, forget, cell and output gate); for a GRU n, r, z (new, reset and update gate) and U_n h,
/// the product of the new gate's weights with the state h. In this order the blocks that are
/// products with inputs (for a GRU the first three) are contiguous, and so are those that are
/// products with states (for a GRU the last three). Weights are packed [input or state][gates].
class CpuRecurrent final : public WholeGradientLayer {
 public:
  explicit CpuRecurrent(const Recurrent& layer)
      : layer_(layer), units_(static_cast<int>(padded(layer.hidden))) {}

  bool needs_backward() const override { return true; }
  int min_in_flight() const override { return 16; }

  void forward(Workspace& w, int first, int count) const override {
    const ExamplesByLength order(w, first, count);
    for (int d = 0; d < layer_.directions(); ++d) {
      for (int e = first; e < first + count; ++e) {
        std::fill_n(w.saved(at_[d].h, e), units_, 0.0f);
        if (is_lstm()) std::fill_n(w.saved(at_[d].c, e), units_, 0.0f);
        multiply_inputs(w, d, e);
      }
      for (int s = 0; s < order.steps(); ++s) {
        multiply_states(w, d, s, order);
        if (is_lstm())
          w.kernels.lstm_forward(lstm_step(w, d, s, order));
        else
          w.kernels.gru_forward(gru_step(w, d, s, order));
      }
      for (int e = first; e < first + count; ++e) write_output(w, d, e);
    }
  }

  void backward(Workspace& w, int first, int count) const override {
    const ExamplesByLength order(w, first, count);
    for (int d = 0; d < layer_.directions(); ++d) {
      for (int e = first; e < first + count; ++e) {
        std::fill_n(w.saved(at_[d].dh, e), units_, 0.0f);
        std::fill_n(w.saved(at_[d].dc, e), is_lstm() ? units_ : 0, 0.0f);
      }
      for (int s = order.steps(); s-- > 0;) {
        for (int k = 0; k < order.active(s); ++k) add_output_gradient(w, d, s, order.example(k));
        if (is_lstm())
          w.kernels.lstm_backward(lstm_step(w, d, s, order));
        else
          w.kernels.gru_backward(gru_step(w, d, s, order));
        if (s > 0) state_gradient(w, d, s, order);
      }
      if (gives_input_gradient())
        for (int e = first; e < first + count; ++e) input_gradient(w, d, e);
    }
  }

 private:
  /// The examples that the thread processes, in order of decreasing length of their texts.
  class ExamplesByLength {
   public:
    ExamplesByLength(Workspace& w, int first, int count) : count_(count) {
      for (int k = 0; k < count; ++k) example_[k] = first + k;
      std::stable_sort(example_, example_ + count,
                       [&](int a, int b) { return w.length(a) > w.length(b); });
      for (int k = 0; k < count; ++k) {
        row_[k] = static_cast<std::int32_t>(w.saved_stride() * example_[k]);
        length_[k] = w.length(example_[k]);
      }
    }

    int steps() const { return count_ > 0 ? length_[0] : 0; }
    /// Returns the number of examples whose texts have more than s words, so that they have a time
    /// step s. They are the first examples in the order by decreasing length.
    int active(int s) const {
      int n = count_;
      while (n > 0 && length_[n - 1] <= s) --n;
      return n;
    }
    int example(int k) const { return example_[k]; }
    /// Returns the offset of each example's numbers in Workspace::saved, relative to the numbers of
    /// the workspace's example 0. The examples are in order of decreasing length.
    const std::int32_t* rows() const { return row_; }

   private:
    int count_;
    int example_[kMaxChunk];
    int length_[kMaxChunk];
    std::int32_t row_[kMaxChunk];
  };

  /// Offsets, for one direction, of the weights and of the values of all steps. In the shapes
  /// below, `gates` is the number of gates, `units` the number of hidden units with padding, and T
  /// the maximum number of positions of a text.
  struct Direction {
    // Offsets in the packed weights, relative to the layer's first.
    std::int64_t weight_ih = 0;  ///< weights of inputs, [channels of the input][input_columns()]
    std::int64_t weight_hh = 0;  ///< weights of states, [hidden][state_columns()]
    std::int64_t bias_ih = 0;    ///< bias of the products with inputs, [input_columns()]
    std::int64_t bias_hh = 0;    ///< bias of the products with states, [state_columns()], GRU only
    // Offsets in the transposed weights.
    std::int64_t transposed_ih = 0;  ///< weights of inputs, [gates * hidden][in().layout.stride]
    std::int64_t transposed_hh = 0;  ///< weights of states, [gates * hidden][units]
    // Offsets in Workspace::saved. States before the first step are stored too; they are zero.
    std::int64_t gates = 0;   ///< gates' values, [T][4][units]
    std::int64_t h = 0;       ///< states, [T + 1][units]
    std::int64_t c = 0;       ///< cell states, [T + 1][units], LSTM only
    std::int64_t c_tanh = 0;  ///< tanh of the cell states, [T][units], LSTM only
    /// Offsets of the gradients of h and, for an LSTM, of c at the current step, [units] each.
    std::int64_t dh = 0;
    std::int64_t dc = 0;
  };

  bool is_lstm() const { return layer_.cell == Cell::lstm; }
  int step_size() const { return 4 * units_; }
  int input_columns() const { return layer_.gates() * units_; }
  int state_columns() const { return layer_.gates() * units_; }
  /// Returns the index, among the numbers of a step's gates, of the first one that is a product
  /// with the state.
  int first_state_column() const { return is_lstm() ? 0 : units_; }
  /// Returns the index of a gate, given in PyTorch's order, among the gates that are products with
  /// inputs.
  int input_block(int gate) const { return is_lstm() ? gate : (gate + 1) % 3; }

  // --- Layout ---

  void reserve(Storage& s) override {
    const int steps = in().layout.width;
    const std::int64_t first = s.packed;
    for (int d = 0; d < layer_.directions(); ++d) reserve_direction(s, at_[d], first, steps);
    reserve_gradient(s, first, s.packed - first);
    packed_ = first;
    for (int d = 0; d < layer_.directions(); ++d) place_weights(s, d);
    make_tables(steps);
  }

  void reserve_direction(Storage& s, Direction& at, std::int64_t first, int steps) const {
    const std::int64_t channels = in().layout.channels;
    at.weight_ih = Storage::reserve(s.packed, channels * input_columns()) - first;
    at.weight_hh =
        Storage::reserve(s.packed, std::int64_t{layer_.hidden} * state_columns()) - first;
    at.bias_ih = Storage::reserve(s.packed, input_columns()) - first;
    if (!is_lstm()) at.bias_hh = Storage::reserve(s.packed, state_columns()) - first;
    const std::int64_t terms = std::int64_t{layer_.gates()} * layer_.hidden;
    if (gives_input_gradient())
      at.transposed_ih = Storage::reserve(s.transposed, terms * in().layout.stride);
    at.transposed_hh = Storage::reserve(s.transposed, terms * units_);
    const auto save = [&](std::int64_t rows) { return Storage::reserve(s.saved, rows * units_); };
    at.gates = save(std::int64_t{4} * steps);
    at.h = save(steps + 1);
    at.dh = save(1);
    if (!is_lstm()) return;
    at.c = save(steps + 1);
    at.c_tanh = save(steps);
    at.dc = save(1);
  }

  /// Sets the offsets of the parameters of direction d in the packed weights. Its tensors are
  /// weight_ih, weight_hh, bias_ih and, for a GRU, bias_hh. s: offsets of all layers' parameters.
  void place_weights(Storage& s, int d) const {
    const Direction& at = at_[d];
    const std::size_t first = static_cast<std::size_t>(d) * (is_lstm() ? 3 : 4);
    const int channels = in().layout.channels;
    const auto place = [&](std::size_t tensor, int row, int width, int column, std::int64_t packed,
                           std::int64_t transposed) {
      const std::size_t j = parameter(first + tensor).offset +
                            static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
                            static_cast<std::size_t>(column);
      s.packed_offset[j] = narrow(packed_ + packed);
      if (transposed >= 0) s.transposed_offset[j] = narrow(transposed);
    };
    for (int gate = 0; gate < layer_.gates(); ++gate)
      for (int j = 0; j < layer_.hidden; ++j) {
        const int row = gate * layer_.hidden + j;
        const std::int64_t x = std::int64_t{input_block(gate)} * units_ + j;
        const std::int64_t h = std::int64_t{gate} * units_ + j;
        for (int i = 0; i < channels; ++i)
          place(0, row, channels, i, at.weight_ih + std::int64_t{i} * input_columns() + x,
                gives_input_gradient()
                    ? at.transposed_ih + std::int64_t{row} * in().layout.stride + i
                    : -1);
        for (int i = 0; i < layer_.hidden; ++i)
          place(1, row, layer_.hidden, i, at.weight_hh + std::int64_t{i} * state_columns() + h,
                at.transposed_hh + std::int64_t{row} * units_ + i);
        place(2, row, 1, 0, at.bias_ih + x, -1);
        if (!is_lstm()) place(3, row, 1, 0, at.bias_hh + h, -1);
      }
  }

  void make_tables(int steps) {
    const int stride = in().layout.stride;
    for (int i = 0; i < in().layout.channels; ++i) {
      input_row_.push_back(i);
      input_weight_row_.push_back(i * input_columns());
      input_steps_.push_back({i, i * input_columns()});
    }
    for (int i = 0; i < layer_.hidden; ++i) {
      state_row_.push_back(i);
      state_weight_row_.push_back(i * state_columns());
      state_steps_.push_back({i, i * state_columns()});
    }
    for (int gate = 0; gate < layer_.gates(); ++gate)
      for (int j = 0; j < layer_.hidden; ++j) {
        const int row = gate * layer_.hidden + j;
        input_gradient_steps_.push_back({input_block(gate) * units_ + j, row * stride});
        state_gradient_steps_.push_back({first_state_column() + gate * units_ + j, row * units_});
      }
    for (int s = 0; s < steps; ++s) {
      const std::int32_t gates = narrow(std::int64_t{s} * step_size());
      gates_row_.push_back(gates);
      state_terms_.push_back({s * units_, gates + first_state_column()});
      for (int d = 0; d < 2; ++d) {
        // The second direction begins at the text's last word.
        const std::int32_t word = (d == 0 ? s : -s) * stride;
        word_row_[d].push_back(word);
        input_terms_[d].push_back({word, gates});
      }
    }
  }

  // --- The passes ---

  /// Returns the offset of the first word that direction d reads: the first word of the text of
  /// example e, or its last word for the backward direction (d = 1). stride: number of floats per
  /// word. w: the thread's workspace.
  std::int64_t first_word(Workspace& w, int d, int e, int stride) const {
    return d == 0 ? 0 : std::int64_t{w.length(e) - 1} * stride;
  }
  const float* weights(Workspace& w, std::int64_t at) const {
    return w.weights.packed + packed_ + at;
  }

  void multiply_inputs(Workspace& w, int d, int e) const {
    const int length = w.length(e);
    if (length == 0) return;
    float* const gates = w.saved(at_[d].gates, e);
    w.kernels.gather_gemm({.a = w.value(in(), e) + first_word(w, d, e, in().layout.stride),
                           .b = weights(w, at_[d].weight_ih),
                           .out = gates,
                           .a_row = word_row_[d].data(),
                           .out_row = gates_row_.data(),
                           .out_block = nullptr,
                           .step = input_steps_.data(),
                           .bias = weights(w, at_[d].bias_ih),
                           .rows = length,
                           .terms = in().layout.channels,
                           .columns = input_columns(),
                           .start = GemmStart::bias});
    if (is_lstm()) return;
    for (int s = 0; s < length; ++s)
      std::fill_n(gates + std::int64_t{s} * step_size() + input_columns(), units_, 0.0f);
  }

  void multiply_states(Workspace& w, int d, int s, const ExamplesByLength& order) const {
    w.kernels.gather_gemm({.a = w.saved(at_[d].h + std::int64_t{s} * units_, 0),
                           .b = weights(w, at_[d].weight_hh),
                           .out = gates(w, d, s) + first_state_column(),
                           .a_row = order.rows(),
                           .out_row = order.rows(),
                           .out_block = nullptr,
                           .step = state_steps_.data(),
                           .bias = nullptr,
                           .rows = order.active(s),
                           .terms = layer_.hidden,
                           .columns = state_columns(),
                           .start = GemmStart::out});
  }

  float* gates(Workspace& w, int d, int s) const {
    return w.saved(at_[d].gates + std::int64_t{s} * step_size(), 0);
  }

  LstmStep lstm_step(Workspace& w, int d, int s, const ExamplesByLength& order) const {
    const std::int64_t before = std::int64_t{s} * units_;
    return {.row = order.rows(),
            .rows = order.active(s),
            .units = units_,
            .gates = gates(w, d, s),
            .c_before = w.saved(at_[d].c + before, 0),
            .c = w.saved(at_[d].c + before + units_, 0),
            .c_tanh = w.saved(at_[d].c_tanh + before, 0),
            .h = w.saved(at_[d].h + before + units_, 0),
            .dh = w.saved(at_[d].dh, 0),
            .dc = w.saved(at_[d].dc, 0)};
  }

  GruStep gru_step(Workspace& w, int d, int s, const ExamplesByLength& order) const {
    const std::int64_t before = std::int64_t{s} * units_;
    return {.row = order.rows(),
            .rows = order.active(s),
            .units = units_,
            .gates = gates(w, d, s),
            .bias = weights(w, at_[d].bias_hh),
            .h_before = w.saved(at_[d].h + before, 0),
            .h = w.saved(at_[d].h + before + units_, 0),
            .dh = w.saved(at_[d].dh, 0)};
  }

  /// Returns the state of example e after step s of direction d. w: the thread's workspace.
  const float* state(Workspace& w, int d, int s, int e) const {
    return w.saved(at_[d].h + (std::int64_t{s} + 1) * units_, e);
  }
  /// Returns the offset at which direction d stores step s of example e in the layer's output; it
  /// is the same in the output's gradient. w: the thread's workspace.
  std::int64_t place(Workspace& w, int d, int s, int e) const {
    const int side = d * layer_.hidden;
    if (layer_.output != RecurrentOutput::sequence) return side;
    const int stride = out().layout.stride;
    return side + first_word(w, d, e, stride) + std::int64_t{d == 0 ? s : -s} * stride;
  }

  void write_output(Workspace& w, int d, int e) const {
    const int length = w.length(e);
    const int n = layer_.hidden;
    float* const y = w.value(out(), e);
    if (d == 0) clear_padding(w, e, y);
    if (layer_.output == RecurrentOutput::sequence) {
      for (int s = 0; s < length; ++s) std::copy_n(state(w, d, s, e), n, y + place(w, d, s, e));
      return;
    }
    float* const to = y + place(w, d, 0, e);
    std::fill_n(to, n, 0.0f);
    if (length == 0) return;
    if (layer_.output == RecurrentOutput::last) {
      std::copy_n(state(w, d, length - 1, e), n, to);
      return;
    }
    for (int s = 0; s < length; ++s) {
      const float* const h = state(w, d, s, e);
      for (int j = 0; j < n; ++j) to[j] += h[j];
    }
    for (int j = 0; j < n; ++j) to[j] /= static_cast<float>(length);
  }

  void clear_padding(Workspace& w, int e, float* y) const {
    const ImageLayout& l = out().layout;
    const int pixels = layer_.output == RecurrentOutput::sequence ? w.length(e) : 1;
    for (int t = 0; t < pixels; ++t)
      std::fill(y + l.at(0, t) + l.channels, y + l.at(0, t) + l.stride, 0.0f);
  }

  void add_output_gradient(Workspace& w, int d, int s, int e) const {
    const int length = w.length(e);
    if (layer_.output == RecurrentOutput::last && s != length - 1) return;
    const float divisor =
        layer_.output == RecurrentOutput::mean ? static_cast<float>(length) : 1.0f;
    const float* const dy = w.gradient(out(), e) + place(w, d, s, e);
    float* const dh = w.saved(at_[d].dh, e);
    for (int j = 0; j < layer_.hidden; ++j) dh[j] += dy[j] / divisor;
  }

  /// Computes the gradient dh with respect to the states before step s of direction d from the
  /// gradients of the gates. For a GRU the result is added to dh, which already has z dh, the part
  /// of the gradient that does not go through the gates (GruStep). w: the thread's workspace.
  /// order: the examples, sorted by length.
  void state_gradient(Workspace& w, int d, int s, const ExamplesByLength& order) const {
    w.kernels.gather_gemm({.a = gates(w, d, s),
                           .b = w.weights.transposed + at_[d].transposed_hh,
                           .out = w.saved(at_[d].dh, 0),
                           .a_row = order.rows(),
                           .out_row = order.rows(),
                           .out_block = nullptr,
                           .step = state_gradient_steps_.data(),
                           .bias = nullptr,
                           .rows = order.active(s),
                           .terms = layer_.gates() * layer_.hidden,
                           .columns = units_,
                           .start = is_lstm() ? GemmStart::zero : GemmStart::out});
  }

  void input_gradient(Workspace& w, int d, int e) const {
    if (w.length(e) == 0) return;
    const int stride = in().layout.stride;
    w.kernels.gather_gemm({.a = w.saved(at_[d].gates, e),
                           .b = w.weights.transposed + at_[d].transposed_ih,
                           .out = w.gradient(in(), e) + first_word(w, d, e, stride),
                           .a_row = gates_row_.data(),
                           .out_row = word_row_[d].data(),
                           .out_block = nullptr,
                           .step = input_gradient_steps_.data(),
                           .bias = nullptr,
                           .rows = w.length(e),
                           .terms = layer_.gates() * layer_.hidden,
                           .columns = stride,
                           .start = d == 0 ? GemmStart::zero : GemmStart::out});
  }

  void make_gradient(Workspace& w, int e, float* g) const override {
    const int length = w.length(e);
    for (int d = 0; d < layer_.directions(); ++d) {
      const Direction& at = at_[d];
      const float* const deltas = w.saved(at.gates, e);
      w.kernels.gather_gemm(
          {.a = w.value(in(), e) + (length > 0 ? first_word(w, d, e, in().layout.stride) : 0),
           .b = deltas,
           .out = g + at.weight_ih,
           .a_row = input_row_.data(),
           .out_row = input_weight_row_.data(),
           .out_block = nullptr,
           .step = input_terms_[d].data(),
           .bias = nullptr,
           .rows = in().layout.channels,
           .terms = length,
           .columns = input_columns(),
           .start = GemmStart::zero});
      w.kernels.gather_gemm({.a = w.saved(at.h, e),
                             .b = deltas,
                             .out = g + at.weight_hh,
                             .a_row = state_row_.data(),
                             .out_row = state_weight_row_.data(),
                             .out_block = nullptr,
                             .step = state_terms_.data(),
                             .bias = nullptr,
                             .rows = layer_.hidden,
                             .terms = length,
                             .columns = state_columns(),
                             .start = GemmStart::zero});
      w.kernels.column_sum({.b = deltas,
                            .step = input_terms_[d].data(),
                            .terms = length,
                            .columns = input_columns(),
                            .out = g + at.bias_ih});
      if (!is_lstm())
        w.kernels.column_sum({.b = deltas,
                              .step = state_terms_.data(),
                              .terms = length,
                              .columns = state_columns(),
                              .out = g + at.bias_hh});
    }
  }

  Recurrent layer_;
  int units_;
  std::int64_t packed_ = 0;  ///< offset of the layer's packed weights
  std::array<Direction, 2> at_;
  // Offset tables of the matrix products (GatherGemm).
  std::vector<std::int32_t> input_row_;  ///< [input], offset of the input in a word's numbers
  std::vector<std::int32_t> input_weight_row_;  ///< [input], offset of the input's weights
  std::vector<std::int32_t> state_row_;         ///< [state], offset of the state in a step's states
  std::vector<std::int32_t> state_weight_row_;
  std::vector<std::int32_t> gates_row_;  ///< [step], offset of the step's gates
  /// Table for each direction, with one entry per step: offset of the word that the step reads,
  /// relative to the word that step 0 reads.
  std::array<std::vector<std::int32_t>, 2> word_row_;
  std::vector<GemmStep> input_steps_;  ///< offsets of each summand, one per input, of a gate
  std::vector<GemmStep> state_steps_;  ///< offsets of each summand, one per state, of a gate
  /// Table for the matrix product that computes input gradients: offsets of the two factors of each
  /// summand of an input's gradient. There is one summand per gate and hidden unit.
  std::vector<GemmStep> input_gradient_steps_;
  /// Table for the matrix product that computes gradients of states: offsets of the two factors of
  /// each summand of a state's gradient. There is one summand per gate and hidden unit.
  std::vector<GemmStep> state_gradient_steps_;
  /// Table for each direction, for the matrix product that computes the gradients of the inputs'
  /// weights: offsets of the two factors (an input and a gate's gradient) of each summand. There is
  /// one summand per step.
  std::array<std::vector<GemmStep>, 2> input_terms_;
  /// Table for the matrix product that computes the gradients of the states' weights: offsets of
  /// the two factors (a state and a gate's gradient) of each summand. There is one summand per
  /// step.
  std::vector<GemmStep> state_terms_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const Recurrent& layer) {
  return std::make_unique<CpuRecurrent>(layer);
}

}  // namespace cudp::cpu
