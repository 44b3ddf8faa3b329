#pragma once
#include <string>
#include <variant>
#include <vector>

#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Shape of one example's activations. A flat vector of n numbers is {n, 1, 1}; a sequence of at
/// most T of them {n, 1, T}, a text of at most T words {1, 1, T}.
struct Shape {
  int channels = 0;
  int height = 1;
  int width = 1;

  int size() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;
};

/// weight [out_channels, in_channels, kernel, kernel], bias [out_channels]; zero padding of `pad`
/// pixels on every side. Output height: (height + 2 pad - kernel) / stride + 1, rounded down.
struct Conv2d {
  std::string name;
  int out_channels = 0;
  int kernel = 0;
  int stride = 1;
  int pad = 0;
};

/// weight [out, in], bias [out]; an image input is flattened channel by channel, row by row.
struct Dense {
  std::string name;
  int out = 0;
  bool per_token = false;  ///< of a sequence: the same weights at every time
};

struct MaxPool2d {
  int kernel = 2;
  int stride = 2;
};

struct AvgPool2d {
  int kernel = 2;
  int stride = 2;
};

/// Normalises each group of channels of one example by that example's own mean and variance, then
/// scales and shifts by weight [channels], bias [channels]. Wu & He 2018.
struct GroupNorm {
  std::string name;
  int groups = 1;
  float epsilon = 1e-5f;
};

/// Words to vectors: the rows of a table. Frozen: the data set's vectors, no parameters. Trainable:
/// weight [rows, columns], for words 0 .. rows - 1; those beyond keep the data set's vectors, or
/// zeros where it has none.
struct Embedding {
  std::string name;
  bool trainable = false;
  int rows = 0;     ///< of the weight, at most; 0: every word
  int columns = 0;  ///< of the weight; 0: as the data set's vectors
};

enum class Cell { lstm, gru };
/// Outputs of a recurrent layer: the states after the last step, their mean over the steps (both
/// zero for an empty text), or all of them.
enum class RecurrentOutput { last, mean, sequence };

/// torch.nn.LSTM or torch.nn.GRU of one layer (the GRU's reset gate acts after the product), over a
/// text's own words: weight_ih_l0 [gates hidden, in], weight_hh_l0 [gates hidden, hidden],
/// bias_ih_l0 [gates hidden], for the GRU bias_hh_l0 too (the LSTM adds its two, so the second
/// stays zero), and the same with `_reverse` where it is bidirectional: then both directions'
/// outputs lie side by side.
struct Recurrent {
  std::string name;
  Cell cell = Cell::lstm;
  int hidden = 0;
  bool bidirectional = false;
  RecurrentOutput output = RecurrentOutput::last;

  int directions() const { return bidirectional ? 2 : 1; }
  int gates() const { return cell == Cell::lstm ? 4 : 3; }
};

/// The mean of a sequence over a text's own words; zero for an empty text.
struct MeanOverTime {
  bool unit = false;  ///< over its Euclidean norm, unless that is 0
};

/// A layer acts on one example at a time: no layer mixes examples, so per-example gradients exist.
using Layer = std::variant<Conv2d, Dense, MaxPool2d, AvgPool2d, GroupNorm, Activate, Embedding,
                           Recurrent, MeanOverTime>;

}  // namespace cudp
