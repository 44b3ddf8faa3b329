#pragma once
// Layout of the fused kernel for texts (recurrent_kernel.cuh): its layers, the offsets of their
// numbers, and the number of texts per block.
#include <cstddef>
#include <cstdint>

#include "kernels/fused/plan.hpp"

namespace cudp::fused {

enum class TextCell { lstm, gru };

/// Sizes of a network for texts: frozen word vectors; a dense layer with activation for every word;
/// an LSTM or GRU, whose last states are its output; a dense layer with activation; and a last
/// dense layer.
struct TextLayers {
  int columns;     ///< length of a word vector
  int words;       ///< outputs of the dense layer for every word
  int hidden;      ///< units of the recurrent layer, in each direction
  int directions;  ///< 1 or 2
  int head;        ///< outputs of the hidden dense layer after the recurrent layer
  int outputs;
  TextCell cell = TextCell::lstm;
};

/// The model models/imdb-rnn.toml on word vectors of length 100: 20,946 parameters.
struct ImdbRnn {
  static constexpr TextLayers kLayers{100, 32, 32, 2, 16, 2};
};
/// The layers of ImdbRnn with a GRU: 16,978 parameters.
struct ImdbGru {
  static constexpr TextLayers kLayers{100, 32, 32, 2, 16, 2, TextCell::gru};
};

/// The layers of ImdbRnn with one direction of 64 units: 29,138 parameters.
struct ImdbOneWay {
  static constexpr TextLayers kLayers{100, 32, 64, 1, 16, 2};
};

/// Largest number of texts that a thread block processes at once. The texts are the columns of a
/// matrix product, and tensor cores compute 8 columns at a time.
inline constexpr int kMaxTexts = 8;

/// Returns whether the fused kernel for texts can compute a network with these sizes. The code of
/// the recurrent steps requires 32 outputs of the words' dense layer, and 32 or 64 units, of which
/// each of 8 warps computes 8. A thread then has at most 96 partial derivatives with respect to the
/// weights of the recurrent layer, and as many sums.
constexpr bool fits_block(const TextLayers& n) {
  return n.words == 32 && (n.hidden == 32 || n.hidden == 64) && n.directions * n.hidden <= 64 &&
         n.columns % 4 == 0 && n.head <= 32 && n.outputs <= 32;
}

/// Positions of a text's own numbers (states, gradients, loss) in the array of floats that each
/// text has in shared memory [floats].
struct TextOffsets {
  int one = 0;     ///< the number 1, which stands for the input of a bias
  int states = 0;  ///< output of the recurrent layer: its last states
  int back = 0;    ///< gradient of the recurrent layer's output, scaled
  int head = 0, gradient_head = 0, gradient = 0;
  /// Offset of 1 / s. The text's gradients of the recurrent and of the words' layer are multiplied
  /// by s, a power of two, so that fp16 can represent them.
  int inverse = 0;
  int weight = 0;  ///< class weight by which clip factors are multiplied
  int loss = 0;
  int size = 0;
};

/// Layout of shared memory, scratch memory and parameters for one network. Row p + 1 of a text's
/// array in shared memory belongs to the word at position p. It has the input of the step at p, and
/// the state of each direction after that step. Network: has the layer sizes, as Network::kLayers.
/// transforms_: whether gradients are transformed before clipping.
template <class Network, bool transforms_>
struct TextPlan {
  static constexpr bool kTransforms = transforms_;
  static constexpr TextLayers kNetwork = Network::kLayers;
  static constexpr int kColumns = kNetwork.columns, kWords = kNetwork.words;
  static constexpr int kHidden = kNetwork.hidden, kDirections = kNetwork.directions;
  static constexpr int kHead = kNetwork.head, kOutputs = kNetwork.outputs;
  static constexpr int kStates = kDirections * kHidden;
  static constexpr bool kIsGru = kNetwork.cell == TextCell::gru;
  /// Number of gates of all units in one direction, four per unit. The four of an LSTM are i, f, g
  /// and o. The four of a GRU are W_n x + b_n, r, z and U_n h + b'_n.
  static constexpr int kGates = 4 * kHidden;
  /// Number of rows of W, and of U, among the parameters of one direction.
  static constexpr int kLines = (kIsGru ? 3 : 4) * kHidden;
  /// Number of gates of all units in both directions: rows of a matrix product, ordered by
  /// direction, unit and gate.
  static constexpr int kGateRows = kDirections * kGates;
  static constexpr int kLayers = 4;
  static_assert(fits_block(kNetwork));

  static constexpr int kThreads = 256, kWarps = 8;
  /// Number of warps per direction: a warp computes 8 units for all texts.
  static constexpr int kStepWarps = kHidden / 8;
  static constexpr int kStepThreads = kStepWarps * 32;
  static_assert(kDirections * kStepWarps <= kWarps && kMaxTexts <= kWarps);

  // Sizes of rows in shared memory [bytes]: odd numbers of 16-byte chunks, to avoid bank conflicts.
  static constexpr int kRow = 2 * (kWords + kStates) + kChunk;
  static constexpr int kDeltaRow = 2 * kGateRows + kChunk;
  static constexpr int kWordSteps = quotient_up(kColumns + 1, 16);
  static constexpr int kVectorRow = 32 * kWordSteps + kChunk;
  static constexpr int kInputRow = 2 * kWords + kChunk;
  /// Number of positions in a piece, the part of a text whose word vectors and deltas (gradients of
  /// the gates) are in shared memory at once.
  static constexpr int kPiece = 80;
  static constexpr int kBackRow = 2 * kPiece + kChunk;

  /// Returns the number of rows of a text with `places` positions. A row has one position's input
  /// and states. text_bytes() returns the size of these rows [bytes], rounded up to 64 more than a
  /// multiple of kBanks, so that the same row of eight texts is in different banks.
  static constexpr int rows(int places) { return round_up_to(places, 16) + 2; }
  static constexpr int text_bytes(int places) {
    return round_up_to(rows(places) * kRow, kBanks) + 64;
  }

  // Byte offset of a text's gradients in the buffer through which the warps of a direction exchange
  // the gates' gradients (deltas) of one step.
  static constexpr int exchange_column(int text) {
    return text * (2 * kGates + 64) + (text >> 1) * 32;
  }
  static constexpr int kExchange = exchange_column(kMaxTexts);

  // Offsets in the model's parameters.
  static constexpr int kWordBias = kWords * kColumns;
  static constexpr int kRecurrent = kWordBias + kWords;
  static constexpr int kStateWeights =
      kLines * kWords;  ///< offset of U from the first parameter of a direction
  /// Offset of the biases from the first parameter of a direction.
  static constexpr int kGateBias = kStateWeights + kLines * kHidden;
  static constexpr int kGateBiases = (kIsGru ? 2 : 1) * kLines;  ///< number of biases per direction
  static constexpr int kDirection = kGateBias + kGateBiases;
  static constexpr int kHeadWeights = kRecurrent + kDirections * kDirection;
  static constexpr int kHeadBias = kHeadWeights + kHead * kStates;
  static constexpr int kLastWeights = kHeadBias + kHead;
  static constexpr int kLastBias = kLastWeights + kOutputs * kHead;
  static constexpr int kParameters = kLastBias + kOutputs;

  /// Returns the index of a gate's rows in W and U, in the order of the parameters (i, f, g, o of
  /// an LSTM; r, z, n of a GRU). gate: index in the order of kGates.
  static constexpr int gate_line(int gate) { return kIsGru ? (gate + 2) % 3 : gate; }
  /// Returns the index among the parameters of an element of the matrix [W U]. W, the weights of
  /// the steps' inputs, and U, the weights of the states, are side by side in it. Returns -1 if the
  /// element has no weight: a GRU has none in W for gate 3, and none in U for gate 0. row: ordered
  /// by direction, unit and gate. column: first the columns of W, then those of U.
  static constexpr int gate_parameter(int row, int column) {
    const bool of_inputs = column < kWords;
    const int gate = row % 4;
    if (kIsGru && gate == (of_inputs ? 3 : 0)) return -1;
    const int line = gate_line(gate) * kHidden + row % kGates / 4;
    const int first = kRecurrent + row / kGates * kDirection;
    return of_inputs ? first + line * kWords + column
                     : first + kStateWeights + line * kHidden + column - kWords;
  }
  /// Returns the row of [W U] to which bias n belongs. n counts the biases of both directions. A
  /// GRU has two biases per unit and gate: first those that are added to W x, in the order r, z, n,
  /// then those that are added to U h.
  static constexpr int bias_row(int n) {
    const int line = n % kGateBiases / kHidden;
    const int gate = !kIsGru ? line : line < 3 ? (line + 1) % 3 : line - 2;
    return n / kGateBiases * kGates + n % kHidden * 4 + gate;
  }
  static constexpr int bias_parameter(int n) {
    return kRecurrent + n / kGateBiases * kDirection + kGateBias + n % kGateBiases;
  }
  /// Returns the index among the network's parameters of the weight from input `column` to output
  /// `output` of the words' dense layer; for the column after the last input, the index of the
  /// output's bias; for later columns -1.
  static constexpr int word_parameter(int output, int column) {
    if (column > kColumns) return -1;
    return column < kColumns ? output * kColumns + column : kWordBias + output;
  }

  static constexpr TextOffsets text_offsets() {
    TextOffsets p;
    int at = 4;
    const auto take = [&](int n) {
      const int here = at;
      at += round_up_to(n, 4);
      return here;
    };
    p.states = take(kStates);
    p.back = take(kStates);
    p.head = take(kHead);
    p.gradient_head = take(kHead);
    p.gradient = take(kOutputs);
    p.inverse = take(2);
    p.weight = p.inverse + 1;
    p.loss = take(1);
    p.size = at;
    return p;
  }
  static constexpr TextOffsets kText = text_offsets();

  // Numbers of tiles of weight gradients that a warp computes. For [W U] a warp computes 16
  // kGateTiles rows and all columns. For the words' layer it computes all rows, and the column
  // tiles warp, warp + 8, ...
  static constexpr int kGateTiles = kGateRows / 16 / kWarps;
  static constexpr int kGateColumns = (kWords + kHidden) / 8;
  static constexpr int kWordTiles = kWords / 16;
  static constexpr int kWordColumns = quotient_up(kColumns + 1, 8);
  static constexpr int kWordOwned = quotient_up(kWordColumns, kWarps);
  static_assert(kGateRows % (16 * kWarps) == 0);

  // Small numbers: partial derivatives with respect to the parameters of the last two layers.
  // Tensor cores do not compute them. Thread t computes those with indices t, t + 256, ...
  static constexpr int kSmall = kHead * (kStates + 1) + kOutputs * (kHead + 1);
  static constexpr int kSmallOwned = quotient_up(kSmall, kThreads);
  struct Small {
    int layer, parameter;
    int a, b;  ///< offsets in the text's array of the two floats whose product is the gradient
  };
  static constexpr Small small_number(int n) {
    constexpr TextOffsets p = text_offsets();
    if (n < kHead * kStates)
      return {2, kHeadWeights + n, p.gradient_head + n / kStates, p.states + n % kStates};
    n -= kHead * kStates;
    if (n < kHead) return {2, kHeadBias + n, p.gradient_head + n, p.one};
    n -= kHead;
    if (n < kOutputs * kHead)
      return {3, kLastWeights + n, p.gradient + n / kHead, p.head + n % kHead};
    n -= kOutputs * kHead;
    return {3, kLastBias + n, p.gradient + n, p.one};
  }

  static constexpr int kBiases = kDirections * kGateBiases;
  static constexpr int kBiasOwned = quotient_up(kBiases, kThreads);
  // Numbers of partial derivatives per thread: of [W U], of the words' layer, and in total. The
  // total includes the recurrent layer's biases and the small numbers. Their squares are added in
  // this order.
  static constexpr int kGateNumbers = kGateTiles * kGateColumns * 4;
  static constexpr int kWordNumbers = kWordTiles * kWordOwned * 4;
  static constexpr int kNumbers = kGateNumbers + kWordNumbers + kBiasOwned + kSmallOwned;

  // Layout of the global memory that a block uses: the gates of every text, position and direction,
  // which the backward pass replaces with their gradients; the cell states of every step of an
  // LSTM; the sums of the gates' gradients.
  /// Size of the gates' values of one position of a text, in the block's global memory [bytes].
  static constexpr std::int64_t kGateBytes = std::int64_t{2} * kGateRows;
  /// Number of 32-bit words of cell states per direction and step.
  static constexpr int kCells = kIsGru ? 0 : kStepThreads;
  static constexpr std::int64_t scratch_bytes(int texts, int places) {
    return texts * (places * kGateBytes + std::int64_t{4} * kGateRows) +
           std::int64_t{4} * places * kDirections * kCells;
  }
};

}  // namespace cudp::fused
