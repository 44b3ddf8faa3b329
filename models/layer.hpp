#pragma once
#include <string>
#include <variant>
#include <vector>

#include "kernels/layers/kinds.hpp"

namespace cudp {

/// Shape {channels, height, width} of one example's activations. A flat vector of n numbers is {n,
/// 1, 1}. A sequence of at most T such vectors is {n, 1, T}. A text of at most T words is {1, 1,
/// T}.
struct Shape {
  int channels = 0;
  int height = 1;
  int width = 1;

  int size() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;
};

// `lr_scale` of a layer: factor of the learning rate of its parameters, > 0.

/// Convolution. Parameters: weight [out_channels, in_channels, kernel, kernel] and bias
/// [out_channels]. The input is padded with `pad` pixels of zeros on every side. The output's
/// height is (height + 2 pad - kernel) / stride + 1, rounded down; the same for its width.
struct Conv2d {
  std::string name;
  int out_channels = 0;
  int kernel = 0;
  int stride = 1;
  int pad = 0;
  float lr_scale = 1.0f;
};

/// Dense layer. Parameters: weight [out, in] and bias [out]. An image as input is flattened channel
/// by channel, row by row.
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

/// Group normalisation (Wu & He 2018). Divides an example's channels into groups, normalises each
/// group by its own mean and variance, then multiplies by weight [channels] and adds bias
/// [channels].
struct GroupNorm {
  std::string name;
  int groups = 1;
  float epsilon = 1e-5f;
  float lr_scale = 1.0f;
};

/// Embedding: maps each word of a text to a vector. If frozen, the vectors are the word vectors
/// that come with the data set, and there are no parameters. If trainable, words 0 .. rows - 1 of
/// the vocabulary have their vectors in the parameter weight [rows, columns]. The other words use
/// the data set's word vectors, or zeros if it has none.
struct Embedding {
  std::string name;
  bool trainable = false;
  int rows = 0;     ///< largest number of trained rows; 0: one for every word
  int columns = 0;  ///< length of a row; 0: that of the data set's vectors
  float lr_scale = 1.0f;
};

enum class Cell { lstm, gru };
/// Output of a recurrent layer: the state after the last step; the mean of the states over the
/// steps; or the states of all steps. For an empty text the first two are zero.
enum class RecurrentOutput { last, mean, sequence };

/// LSTM or GRU with one layer, which makes one step per word of a text; padding after the last word
/// is skipped. It computes what torch.nn.LSTM and torch.nn.GRU do; the GRU's reset gate acts after
/// the product. Parameters: weight_ih_l0 [gates hidden, in], weight_hh_l0 [gates hidden, hidden],
/// bias_ih_l0 [gates hidden], and for the GRU bias_hh_l0; gates is 4 for an LSTM, 3 for a GRU.
/// (PyTorch's LSTM only adds its two biases, so the second one stays zero.) A bidirectional layer
/// has a second set of tensors, named with `_reverse`, and concatenates the outputs of both
/// directions.
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

/// Mean of a sequence of vectors over the words that a text has, without padding; zero for an empty
/// text.
struct MeanOverTime {
  bool unit = false;  ///< divide the mean by its Euclidean norm, unless that is 0
};

/// A layer. It acts on one example at a time: no layer mixes examples, so per-example gradients
/// exist.
using Layer = std::variant<Conv2d, Dense, MaxPool2d, AvgPool2d, GroupNorm, Activate, Embedding,
                           Recurrent, MeanOverTime>;

}  // namespace cudp
