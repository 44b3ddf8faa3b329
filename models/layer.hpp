#pragma once
#include <string>
#include <variant>
#include <vector>

#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Shape of one example's activations. A flat vector of n numbers is {n, 1, 1}. A sequence of at
/// most T such vectors is {n, 1, T}. A text of at most T words is {1, 1, T}.
struct Shape {
  int channels = 0;
  int height = 1;
  int width = 1;

  int size() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;
};

// `lr_scale` of a layer: factor of the learning rate of its parameters, > 0.

/// Convolution. weight [out_channels, in_channels, kernel, kernel], bias [out_channels]; zero
/// padding of `pad` pixels on every side. Output height: (height + 2 pad - kernel) / stride + 1,
/// rounded down.
struct Conv2d {
  std::string name;
  int out_channels = 0;
  int kernel = 0;
  int stride = 1;
  int pad = 0;
  float lr_scale = 1.0f;
};

/// Dense layer. weight [out, in], bias [out]; an image input is flattened channel by channel, row
/// by row.
struct Dense {
  std::string name;
  int out = 0;
  bool per_token = false;  ///< apply the same weights at every position of a sequence
  float lr_scale = 1.0f;
};

struct MaxPool2d {
  int kernel = 2;
  int stride = 2;
};

struct AvgPool2d {
  int kernel = 2;
  int stride = 2;
};

/// Group normalisation (Wu & He 2018). Normalises each group of channels of one example by the
/// example's own mean and variance, then scales and shifts by weight [channels], bias [channels].
struct GroupNorm {
  std::string name;
  int groups = 1;
  float epsilon = 1e-5f;
  float lr_scale = 1.0f;
};

/// Embedding: maps each word to a row of a table. Frozen: the rows are the data set's word vectors,
/// and there are no parameters. Trainable: weight [rows, columns] for words 0 .. rows - 1. Later
/// words use the data set's vectors, or zeros if it has none.
struct Embedding {
  std::string name;
  bool trainable = false;
  int rows = 0;     ///< largest number of trained rows; 0: one for every word
  int columns = 0;  ///< length of a row; 0: that of the data set's vectors
  float lr_scale = 1.0f;
};

enum class Cell { lstm, gru };
/// Output of a recurrent layer: the states after the last step, their mean over the steps (both are
/// zero for an empty text), or all states.
enum class RecurrentOutput { last, mean, sequence };

/// LSTM or GRU with one layer, over a text's own words, as in torch.nn.LSTM and torch.nn.GRU (the
/// GRU's reset gate acts after the product). Parameters: weight_ih_l0 [gates hidden, in],
/// weight_hh_l0 [gates hidden, hidden], bias_ih_l0 [gates hidden], and for the GRU bias_hh_l0. (The
/// LSTM adds its two biases, so its second one stays zero.) A bidirectional layer has the same
/// tensors with `_reverse` as well, and concatenates the outputs of both directions.
struct Recurrent {
  std::string name;
  Cell cell = Cell::lstm;
  int hidden = 0;
  bool bidirectional = false;
  RecurrentOutput output = RecurrentOutput::last;
  float lr_scale = 1.0f;

  int directions() const { return bidirectional ? 2 : 1; }
  int gates() const { return cell == Cell::lstm ? 4 : 3; }
};

/// Mean of a sequence over a text's own words; zero for an empty text.
struct MeanOverTime {
  bool unit = false;  ///< divide the mean by its Euclidean norm, unless that is 0
};

/// A layer. It acts on one example at a time: no layer mixes examples, so per-example gradients
/// exist.
using Layer = std::variant<Conv2d, Dense, MaxPool2d, AvgPool2d, GroupNorm, Activate, Embedding,
                           Recurrent, MeanOverTime>;

}  // namespace cudp
