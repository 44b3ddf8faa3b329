#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/layer.hpp"

namespace cudp {

/// Description of a network as the user gives it. The shapes of its layers are not known yet.
struct ModelSpec {
  std::string name;
  std::vector<Layer> layers;
  Loss loss = Loss::softmax_cross_entropy;
  /// Threshold h of the Huber loss (the loss is linear where |output - target| > h), in units of
  /// the scaled target; finite and > 0.
  float huber = 1.0f;
};

/// One trainable tensor, a slice of the vector of all parameters. Layout and order are those of
/// PyTorch, so that a saved model can be loaded there by the names of its tensors: convolutions
/// [out, in, kernel, kernel], dense layers [out, in], row-major.
struct ParameterTensor {
  std::string name;        ///< name in the released file, e.g. "conv1.weight"
  std::vector<int> shape;  ///< dimensions in the released file
  std::size_t offset = 0;  ///< index of its first number in the flat vector
  std::size_t size = 0;    ///< product of shape
  int fan_in = 0;          ///< number of inputs that one output depends on, for initialisation
  int fan_out = 0;
  bool is_bias = false;  ///< initialised to zero (a group-norm weight: to one)
  /// Index of the tensor's layer among the layers with trained parameters (groups),
  /// 0..Network::groups-1. Per-layer clipping clips each group separately.
  int group = 0;
  std::size_t touched = 0;  ///< largest number of entries that are not 0 in one example's gradient
  float lr_scale = 1.0f;    ///< factor of the learning rate of this tensor
};

/// Properties of a data set of texts on which the shapes of a network's layers depend.
struct TextShape {
  int words = 0;    ///< number of different words; 0: the examples are not texts
  int columns = 0;  ///< length of the data set's word vectors; 0 if it has none
};

/// A layer of a network, the shapes of its input and output, and the positions of its tensors in
/// the network's list of parameters.
struct NetworkLayer {
  Layer layer;
  Shape in;
  Shape out;
  /// whether the input is a sequence with one vector for each word of the text
  bool in_sequence = false;
  /// whether the output is a sequence with one vector for each word of the text
  bool out_sequence = false;
  /// index of the layer's first tensor in Network::parameters, or in Network::frozen
  std::size_t first_parameter = 0;
  /// number of the layer's tensors: first_parameter, first_parameter + 1, and so on
  std::size_t parameter_count = 0;
  int group = -1;  ///< index among trained layers, for per-layer clipping; -1: none
  /// whether the layer's tensors are constants, in Network::frozen (models/freeze.hpp)
  bool frozen = false;

  /// Returns whether the layer has trained parameters, i.e. parameters that are not frozen.
  bool has_parameters() const { return parameter_count > 0 && !frozen; }
};

/// A network whose layers' shapes are all known and checked. It has the layers, the loss, and the
/// positions of all tensors in the vector of parameters.
struct Network {
  ModelSpec spec;
  Shape input;
  TextShape text;
  int classes = 0;  ///< 1: the examples have targets and no classes
  int outputs = 0;  ///< logits: `classes` for softmax, 1 for every other loss
  std::vector<NetworkLayer> layers;
  std::vector<ParameterTensor> parameters;  ///< tensors that are trained
  /// Tensors that PyTorch's layers have and this network does not, such as an LSTM's second bias.
  /// They are always zero. They are written to saved models so that PyTorch can load these.
  /// ParameterTensor::offset is not used.
  std::vector<ParameterTensor> zeros;
  /// Tensors of frozen layers. Their offsets continue after the trained parameters, so the first
  /// one is parameter_count. The value at such an offset is frozen_values[offset -
  /// parameter_count].
  std::vector<ParameterTensor> frozen;
  std::shared_ptr<const std::vector<float>> frozen_values;  ///< null if no layer is frozen
  /// d, the number of trained parameters.
  std::size_t parameter_count = 0;
  int groups = 0;

  /// Returns the i-th parameter tensor of a layer.
  const ParameterTensor& tensor(const NetworkLayer& layer, std::size_t i) const {
    return (layer.frozen ? frozen : parameters)[layer.first_parameter + i];
  }
};

/// Builds a network from its description: checks every shape and lays out the parameters. input:
/// shape of one example. classes: at least 2, or 1 if the loss compares with a target. text: given
/// if examples are texts; `input` is then {1, 1, T}. Throws std::invalid_argument, with the number
/// of the layer, if the description does not fit. Examples: a kernel larger than its padded input,
/// groups that do not divide the channels, a last layer of the wrong width, a duplicate or missing
/// parameter name, logistic or hinge loss with more than two classes, a layer for sequences whose
/// input is not a sequence, or the reverse.
Network build_network(const ModelSpec& spec, const Shape& input, int classes,
                      const TextShape& text = {});

/// Reads the description of a network in TOML; models/README.md lists the keys. source: name of the
/// text in error messages. classes: number of classes; it determines the loss (one logit or
/// softmax) and the width of a layer with `out = "outputs"`. activation: kind of all layers of type
/// "activation"; if empty, the description's own kinds are used. Throws std::invalid_argument with
/// source and line if a key or a layer type is unknown. Batch norm is refused, because it mixes
/// examples.
ModelSpec parse_model(std::string_view toml, const std::string& source, int classes,
                      const std::string& activation = "");

/// Returns the factor by which the learning rate of a layer's parameters is multiplied; 1 for
/// layers without parameters.
float lr_scale_of(const Layer& layer);

/// Returns the names of the built-in models, models/*.toml.
std::vector<std::string> model_names();

/// Returns the TOML text of the built-in model with this name; empty if there is none.
std::string_view builtin_model(std::string_view name);

}  // namespace cudp
