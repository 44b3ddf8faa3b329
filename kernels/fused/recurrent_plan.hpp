#pragma once
// Layout of the fused kernel of texts (recurrent_kernel.cuh): which layers it has, where their
// numbers are, and how many texts a block can hold.
#include <cstddef>
#include <cstdint>

#include "kernels/fused/plan.hpp"

namespace cudp::fused {

/// Layers of a network of texts: frozen word vectors, a dense layer for every word and its
/// function, an LSTM whose last states are its output, a dense layer and its function, and a last
/// dense layer.
struct TextLayers {
  int columns;     ///< of the word vectors
  int words;       ///< outputs of the dense layer for every word
  int hidden;      ///< units of the LSTM, in each direction
  int directions;  ///< 1 or 2
  int head;        ///< outputs of the dense layer after the LSTM
  int outputs;
};

/// imdb-rnn (models/imdb-rnn.toml) on vectors of 100 columns: 20,946 parameters.
struct ImdbRnn {
  static constexpr TextLayers kLayers{100, 32, 32, 2, 16, 2};
};

/// The largest number of texts that a block processes at once: the columns of a product.
inline constexpr int kMaxTexts = 8;

/// Floats of a text.
struct TextPlaces {
  int one = 0;     ///< the number 1, a bias's input
  int states = 0;  ///< the LSTM's output
  int back = 0;    ///< its gradient, scaled
  int head = 0, gradient_head = 0, gradient = 0;
  int inverse = 0;  ///< 1 / the scale of the gradients of the LSTM and of the words' layer
  int loss = 0;
  int size = 0;
};

/// Layout for a network. Numbers of a text's word at position p are in row p + 1 of the text: the
/// LSTM's input, and the states of each direction after its step at p.
template <class Network, bool transforms_>
struct TextPlan {
  static constexpr bool kTransforms = transforms_;
  static constexpr TextLayers kNetwork = Network::kLayers;
  static constexpr int kColumns = kNetwork.columns, kWords = kNetwork.words;
  static constexpr int kHidden = kNetwork.hidden, kDirections = kNetwork.directions;
  static constexpr int kHead = kNetwork.head, kOutputs = kNetwork.outputs;
  static constexpr int kStates = kDirections * kHidden;
  static constexpr int kGates = 4 * kHidden;              ///< rows of W and U in one direction
  static constexpr int kGateRows = kDirections * kGates;  ///< row: direction, unit, gate
  static constexpr int kLayers = 4;
  static_assert(kWords == 32 && kHidden == 32, "the steps are written for 32 numbers and units");
  static_assert(kColumns % 4 == 0 && kHead <= 32 && kOutputs <= 32);

  static constexpr int kThreads = 256, kWarps = 8;
  /// Warps of a direction: a warp has 8 units of all texts.
  static constexpr int kStepWarps = kHidden / 8;
  static constexpr int kStepThreads = kStepWarps * 32;
  static_assert(kDirections * kStepWarps <= kWarps && kMaxTexts <= kWarps);

  // Bytes of rows in shared memory: odd numbers of chunks.
  static constexpr int kRow = 2 * (kWords + kStates) + kChunk;
  static constexpr int kDeltaRow = 2 * kGateRows + kChunk;
  static constexpr int kWordSteps = quotient_up(kColumns + 1, 16);
  static constexpr int kVectorRow = 32 * kWordSteps + kChunk;
  static constexpr int kInputRow = 2 * kWords + kChunk;
  /// Positions of a text whose word vectors and deltas are in shared memory at once.
  static constexpr int kPiece = 80;
  static constexpr int kBackRow = 2 * kPiece + kChunk;

  /// Bytes of a text's rows: 64 more than a multiple of the banks, so that eight texts' rows of 64
  /// bytes have no conflict.
  static constexpr int rows(int places) { return round_up_to(places, 16) + 2; }
  static constexpr int text_bytes(int places) {
    return round_up_to(rows(places) * kRow, kBanks) + 64;
  }

  // Deltas of one step that the warps of a direction exchange: a column of gradients a text.
  static constexpr int exchange_column(int text) {
    return text * (2 * kGates + 64) + (text >> 1) * 32;
  }
  static constexpr int kExchange = exchange_column(kMaxTexts);

  // Offsets of parameters.
  static constexpr int kWordBias = kWords * kColumns;
  static constexpr int kRecurrent = kWordBias + kWords;
  static constexpr int kStateWeights =
      kGates * kWords;  ///< from a direction's first, like the next
  static constexpr int kGateBias = kStateWeights + kGates * kHidden;
  static constexpr int kDirection = kGateBias + kGates;
  static constexpr int kHeadWeights = kRecurrent + kDirections * kDirection;
  static constexpr int kHeadBias = kHeadWeights + kHead * kStates;
  static constexpr int kLastWeights = kHeadBias + kHead;
  static constexpr int kLastBias = kLastWeights + kOutputs * kHead;
  static constexpr int kParameters = kLastBias + kOutputs;

  /// Offset of row (direction, unit, gate) and column of [W U].
  static constexpr int gate_parameter(int row, int column) {
    const int in_direction = row % kGates, line = in_direction % 4 * kHidden + in_direction / 4;
    const int first = kRecurrent + row / kGates * kDirection;
    return column < kWords ? first + line * kWords + column
                           : first + kStateWeights + line * kHidden + column - kWords;
  }
  static constexpr int bias_parameter(int row) {
    const int in_direction = row % kGates;
    return kRecurrent + row / kGates * kDirection + kGateBias + in_direction % 4 * kHidden +
           in_direction / 4;
  }
  /// Offset of a weight or, in the column after them, of a bias of the words' layer; -1 if there is
  /// none.
  static constexpr int word_parameter(int output, int column) {
    if (column > kColumns) return -1;
    return column < kColumns ? output * kColumns + column : kWordBias + output;
  }

  static constexpr TextPlaces text_places() {
    TextPlaces p;
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
    p.inverse = take(1);
    p.loss = take(1);
    p.size = at;
    return p;
  }
  static constexpr TextPlaces kText = text_places();

  // Tiles of gradients. Of [W U], a warp has 16 kGateTiles rows and all columns; of the words'
  // layer all rows and the columns of tiles warp, warp + 8, ...
  static constexpr int kGateTiles = kGateRows / 16 / kWarps;
  static constexpr int kGateColumns = (kWords + kHidden) / 8;
  static constexpr int kWordTiles = kWords / 16;
  static constexpr int kWordColumns = quotient_up(kColumns + 1, 8);
  static constexpr int kWordOwned = quotient_up(kWordColumns, kWarps);
  static_assert(kGateRows % (16 * kWarps) == 0);

  // Numbers of the last two layers, a thread's being thread, thread + 256, ...
  static constexpr int kSmall = kHead * (kStates + 1) + kOutputs * (kHead + 1);
  static constexpr int kSmallOwned = quotient_up(kSmall, kThreads);
  struct Small {
    int layer, parameter;
    int a, b;  ///< places of the two floats whose product it is
  };
  static constexpr Small small_number(int n) {
    constexpr TextPlaces p = text_places();
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

  // A thread's numbers, in the order in which their squares are added.
  static constexpr int kGateNumbers = kGateTiles * kGateColumns * 4;
  static constexpr int kWordNumbers = kWordTiles * kWordOwned * 4;
  static constexpr int kNumbers = kGateNumbers + kWordNumbers + 1 + kSmallOwned;

  // Scratch of a block: gates and then deltas of every text, position and direction; the cells of
  // every step; sums of deltas.
  static constexpr std::int64_t kGateBytes = 2 * kGateRows;  ///< of a position
  static constexpr std::int64_t scratch_bytes(int texts, int places) {
    return texts * (places * kGateBytes + 4 * kGateRows) +
           std::int64_t{4} * places * kDirections * kStepThreads;
  }
};

}  // namespace cudp::fused
