#include "runtime/report/torch_code.hpp"

#include <stdexcept>

#include <spdlog/fmt/fmt.h>

#include "models/model.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/results/model_inputs.hpp"
#include "runtime/results/released_model.hpp"

namespace cudp {
namespace {

/// Function object that appends the PyTorch code of a layer to `layers`. is_flat: whether the
/// layers so far flatten their input to vectors. at: the layer that is converted, with its shapes.
struct TorchLayers {
  std::vector<std::pair<std::string, std::string>> layers;  ///< name and code of each layer
  bool is_flat = false;
  bool is_chain = true;  ///< false: a layer has no counterpart in nn.Sequential
  const NetworkLayer* at = nullptr;

  void add(std::string name, std::string code) {
    if (name.empty()) name = fmt::format("layer{}", layers.size() + 1);
    constexpr const char* kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (name.find_first_not_of(kPlain) != std::string::npos) is_chain = false;
    layers.emplace_back(std::move(name), std::move(code));
  }
  void operator()(const Conv2d& c) {
    add(c.name, fmt::format("nn.Conv2d({}, {}, {}, stride={}, padding={})", at->in.channels,
                            c.out_channels, c.kernel, c.stride, c.pad));
  }
  void operator()(const Dense& d) {
    if (d.per_token) is_chain = false;
    if (!is_flat) add("", "nn.Flatten()");
    is_flat = true;
    add(d.name, fmt::format("nn.Linear({}, {})", at->in.size(), at->out.size()));
  }
  void operator()(const MaxPool2d& p) {
    add("", fmt::format("nn.MaxPool2d({}, {})", p.kernel, p.stride));
  }
  void operator()(const AvgPool2d& p) {
    add("", fmt::format("nn.AvgPool2d({}, {})", p.kernel, p.stride));
  }
  void operator()(const GroupNorm& g) {
    add(g.name, fmt::format("nn.GroupNorm({}, {}, eps={:g})", g.groups, at->in.channels,
                            static_cast<double>(g.epsilon)));
  }
  void operator()(const Activate& a) {
    if (a.kind == Activation::relu)
      add("", "nn.ReLU()");
    else if (a.kind == Activation::tanh)
      add("", "nn.Tanh()");
    else
      is_chain = false;
  }
  void operator()(const Embedding&) { is_chain = false; }
  void operator()(const Recurrent&) { is_chain = false; }
  void operator()(const MeanOverTime&) { is_chain = false; }
};

}  // namespace

std::string torch_code(const TensorFile& model) {
  const auto has = [&](const char* key) { return model.metadata.contains(key); };
  const bool prepared = has("features") || has("normalise");
  Network network;
  try {
    network = released_network(model, {}, "model.safetensors");
  } catch (const std::exception&) {
    return "";
  }
  TorchLayers code;
  for (const NetworkLayer& layer : network.layers) {
    code.at = &layer;
    std::visit(code, layer.layer);
  }
  if (!code.is_chain) return "";
  const char* const x = has("features") ? "features" : "x";
  std::string s =
      "from collections import OrderedDict\n"
      "import torch\n"
      "from torch import nn\n"
      "from safetensors.torch import load_file  # pip install safetensors\n"
      "\n"
      "net = nn.Sequential(OrderedDict([\n";
  for (const auto& [name, layer] : code.layers)
    s += fmt::format("    (\"{}\", {}),\n", name, layer);
  s += "]))\nnet.load_state_dict(load_file(\"model.safetensors\"))\n";
  if (prepared)
    s += fmt::format("# {}: computed before, as described above; float32\n", x);
  else if (const auto pixels = read_inputs(model, "model.safetensors").pixels)
    s += fmt::format(
        "x = {} * torch.as_tensor(images, dtype=torch.float32) + {}  # bytes, 0 to 255\n",
        number_text(pixels->scale), number_text(pixels->shift));
  if (network.outputs > 1)
    s += fmt::format("classes = net({}).argmax(1)\n", x);
  else if (has_target(network.spec.loss))
    s += fmt::format("outputs = net({})\n", x);
  else
    s += fmt::format(
        "classes = (net({})[:, 0] > 0).long()  # the output of two classes is that of class 1\n",
        x);
  return s;
}

}  // namespace cudp
