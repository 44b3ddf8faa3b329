#include "runtime/training/public_weights.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include <fnmatch.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include "models/freeze.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/rounded_text.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/data/bytes.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/published.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr std::size_t kMaxNamed = 8;  ///< maximum number of names in a message

std::string listed(std::vector<std::string> names) {
  const std::size_t more = names.size() > kMaxNamed ? names.size() - kMaxNamed : 0;
  if (more > 0) names.resize(kMaxNamed);
  for (std::string& name : names) name = name.size() > 80 ? shown(name) : name;
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string shape_text(const std::vector<int>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<std::string> split(const std::string& globs) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= globs.size();) {
    const std::size_t end = std::min(globs.find(',', at), globs.size());
    all.push_back(globs.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

bool matches(const std::string& glob, const std::string& tensor) {
  const auto is = [&](const std::string& name) {
    return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
  };
  return is(tensor) || is(tensor.substr(0, tensor.rfind('.')));
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Throws InputError if the file is in the folder of a training that a tuning made: the tuning's
/// guarantee holds if the best training alone is released.
void check_released(const std::string& path) {
  const std::string tuning = tuning_of(path).string();
  if (!tuning.empty())
    throw InputError(fmt::format(
        "--init {}: expected weights that are released, found those of a training of a tuning, "
        "which releases the best one alone: --init {}/release/model.safetensors (cudp tune "
        "--resume {} finishes it)",
        path, tuning, tuning));
}

std::string read_input(const std::string& path) {
  check_released(path);
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored))
    throw InputError("--init: expected a .safetensors file, found none at " + path);
  try {
    return read_file(path);
  } catch (const Error& e) {
    throw InputError(std::string("--init: ") + e.what());
  }
}

/// A file of weights whose tensors are found by their names in the model.
class WeightFile {
 public:
  explicit WeightFile(const std::string& path)
      : path_(path),
        bytes_(read_input(path)),
        file_(decode_floats(bytes_, path)),
        digest_(sha256_of(bytes_of(bytes_))) {
    bytes_.clear();
  }

  const std::string& digest() const { return digest_; }
  const std::string* metadata(const char* key) const {
    const auto found = file_.metadata.find(key);
    return found == file_.metadata.end() ? nullptr : &found->second;
  }

  /// Returns the elements of a tensor; empty if the file has no tensor of this name.
  std::span<const float> values(const ParameterTensor& t) {
    const auto found = std::ranges::find(file_.tensors, t.name, &ParameterTensor::name);
    if (found == file_.tensors.end()) return {};
    if (found->shape != t.shape)
      throw InputError(fmt::format(
          "--init {}: {}: expected shape {} as the model has, found {}; a layer with a name that "
          "the file does not have is initialised at random",
          path_, t.name, shape_text(t.shape), shape_text(found->shape)));
    used_.push_back(t.name);
    return std::span(file_.values).subspan(found->offset, found->size);
  }

  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const ParameterTensor& t : file_.tensors)
      if (std::ranges::find(used_, t.name) == used_.end()) names.push_back(t.name);
    return names;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    names.reserve(file_.tensors.size());
    for (const ParameterTensor& t : file_.tensors) names.push_back(t.name);
    return names;
  }

 private:
  std::string path_;
  std::string bytes_;
  TensorFile file_;
  std::string digest_;
  std::vector<std::string> used_;
};

/// For each LSTM of the network: if the file has a second bias for it, adds that to the first one,
/// because cudp's LSTM has a single bias.
void add_second_biases(WeightFile& file, const Network& network, std::vector<float>& values) {
  constexpr std::string_view kSecond = ".bias_hh";
  for (const ParameterTensor& zero : network.zeros) {
    std::string first = zero.name;
    first.replace(first.rfind(kSecond), kSecond.size(), ".bias_ih");
    const auto to = std::ranges::find(network.parameters, first, &ParameterTensor::name);
    const std::span<const float> second = file.values(zero);
    for (std::size_t i = 0; i < second.size(); ++i) values[to->offset + i] += second[i];
  }
}

// Ends of the descriptions that own_training() returns.
constexpr const char* kWithoutCertificate =
    " and no certificate is beside it: what it may show of those rows is not counted here";
constexpr const char* kOfAnUnpublishedRun =
    " in a run that is not for release: what it may show of those rows is not counted here";

/// Returns the beginning of the descriptions that own_training() returns.
std::string trained_on(const std::string& dataset) {
  return "cudp trained the file on " + shown(dataset, 200);
}

/// Returns a description of the training in which cudp made the weights of a file; "" if cudp did
/// not make them.
std::string own_training(const WeightFile& file, const std::string& path) {
  const std::string* const dataset = file.metadata("dataset");
  if (dataset == nullptr || file.metadata("model") == nullptr) return "";
  const std::string trained = trained_on(*dataset);
  if (!run_of_weights(path).empty()) {
    try {
      const privacy::Certificate c = privacy::read_certificate(
          read_file((fs::path(path).parent_path() / "privacy.json").string()));
      if (!c.for_release()) return trained + kOfAnUnpublishedRun;
      return fmt::format("{}: epsilon {} at delta {} of that run is not counted here", trained,
                         short_rounded_up(c.epsilon), short_rounded_up(c.delta));
    } catch (const std::exception&) {  // no description
    }
  }
  return trained + kWithoutCertificate;
}

}  // namespace

std::vector<bool> frozen_layers(const Network& network, const std::string& globs) {
  std::vector<bool> layers(network.layers.size(), false);
  if (globs.empty()) return layers;
  std::vector<bool> tensors(network.parameters.size(), false);
  for (const std::string& glob : split(globs)) {
    bool any = false;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      if (matches(glob, network.parameters[t].name)) any = tensors[t] = true;
    if (!any) {
      std::vector<std::string> names;
      names.reserve(network.parameters.size());
      for (const ParameterTensor& t : network.parameters) names.push_back(t.name);
      throw InputError("--freeze: expected names of the model's tensors or layers (" +
                       listed(names) + "), found " + shown(glob));
    }
  }
  bool trained = false;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const NetworkLayer& l = network.layers[i];
    if (l.parameter_count == 0) continue;
    layers[i] = tensors[l.first_parameter];
    for (std::size_t t = l.first_parameter; t < l.first_parameter + l.parameter_count; ++t)
      if (tensors[t] != layers[i]) {
        const std::string& name = network.parameters[t].name;
        throw InputError("--freeze: expected all tensors of a layer or none, found some of " +
                         name.substr(0, name.rfind('.')) + "; its name alone freezes all of it");
      }
    trained = trained || !layers[i];
  }
  if (!trained)
    throw InputError("--freeze: expected a layer that is left to train, found every one frozen: " +
                     globs);
  return layers;
}

std::vector<std::string> tensors_of_layers(const Network& network,
                                           const std::vector<bool>& layers) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (layers[i])
      for (std::size_t t = 0; t < network.layers[i].parameter_count; ++t)
        names.push_back(network.tensor(network.layers[i], t).name);
  return names;
}

PublicWeights start_from_public_weights(const FineTuning& settings, Network& network) {
  constexpr float kDrawn = std::numeric_limits<float>::quiet_NaN();
  const std::string& path = settings.init;
  const std::string name = fs::path(path).filename().string();
  const std::vector<bool> layers = frozen_layers(network, settings.freeze);
  WeightFile file(path);
  std::vector<float> values(network.parameter_count, kDrawn);
  std::vector<std::string> found, missing;
  for (const ParameterTensor& t : network.parameters) {
    const std::span<const float> from = file.values(t);
    (from.empty() ? missing : found).push_back(t.name);
    std::ranges::copy(from, values.begin() + static_cast<std::ptrdiff_t>(t.offset));
  }
  if (found.empty())
    throw InputError(fmt::format("--init {}: expected tensors named as the model's ({}), found {}",
                                 path, listed(missing),
                                 file.names().empty() ? "none" : listed(file.names())));
  add_second_biases(file, network, values);

  PublicWeights w;
  w.input = {.file = name,
             .sha256 = file.digest(),
             .frozen = tensors_of_layers(network, layers),
             .not_counted = own_training(file, path)};
  for (const std::string& frozen : w.input.frozen)
    if (std::ranges::find(missing, frozen) != missing.end())
      throw InputError(fmt::format(
          "--freeze: expected tensors that {} has, found {}, which it lacks", path, frozen));
  w.notes.push_back(fmt::format("initial weights of {} tensors are those of {} (SHA-256 {}...)",
                                found.size(), name, file.digest().substr(0, 12)));
  if (!missing.empty())
    w.notes.push_back("initialised at random, since " + name + " lacks them: " + listed(missing));
  if (const auto unused = file.unused(); !unused.empty())
    w.notes.push_back("not used of " + name + ": " + listed(unused));

  network = freeze(network, layers, values);
  if (network.frozen_values) w.frozen = *network.frozen_values;
  w.initial.resize(network.parameter_count, kDrawn);
  const Network whole = unfrozen(network);
  for (const ParameterTensor& t : network.parameters) {
    const auto in_whole = std::ranges::find(whole.parameters, t.name, &ParameterTensor::name);
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(in_whole->offset), t.size,
                w.initial.begin() + static_cast<std::ptrdiff_t>(t.offset));
  }
  return w;
}

void freeze_again(const FineTuning& settings, const PublicWeights& weights, Network& network) {
  const std::vector<bool> layers = frozen_layers(network, settings.freeze);
  // A resumed run repeats the noise of its steps. With other frozen tensors it would release other
  // sums with the same noise, which reveals the difference of the sums.
  if (const auto now = tensors_of_layers(network, layers); now != weights.input.frozen)
    throw InputError(
        fmt::format("--freeze: expected the tensors that the run began with ({}), found {}",
                    weights.input.frozen.empty() ? "none" : listed(weights.input.frozen),
                    now.empty() ? "none" : listed(now)));
  std::vector<float> values(network.parameter_count);
  std::span<const float> left = weights.frozen;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i]) continue;
    for (std::size_t k = 0; k < network.layers[i].parameter_count; ++k) {
      const ParameterTensor& t = network.tensor(network.layers[i], k);
      ensure(left.size() >= t.size, "the checkpoint lacks frozen weights");
      std::ranges::copy(left.first(t.size), values.begin() + static_cast<std::ptrdiff_t>(t.offset));
      left = left.subspan(t.size);
    }
  }
  ensure(left.empty(), "the checkpoint has other frozen weights");
  network = freeze(network, layers, values);
}

std::string why_not_for_release(const privacy::Certificate::PublicInput& weights,
                                const std::string& dataset) {
  if (weights.not_counted.ends_with(kOfAnUnpublishedRun))
    return "initial weights are those of a run that is not for release";
  if (weights.not_counted == trained_on(dataset) + kWithoutCertificate)
    return "initial weights were trained on data of the same name, and no certificate is beside "
           "them";
  return "";
}

std::string digest_of_file(const std::string& path) {
  return sha256_of(bytes_of(read_input(path)));
}

std::string digest_of(const std::vector<float>& numbers) {
  return sha256_of(bytes_of(std::string_view(reinterpret_cast<const char*>(numbers.data()),
                                             numbers.size() * sizeof(float))));
}

std::string run_of_weights(const std::string& path) {
  std::error_code ignored;
  const fs::path folder = fs::absolute(path).parent_path();
  if (!fs::is_regular_file(folder / "privacy.json", ignored)) return "";
  return (folder.filename() == "release" ? folder.parent_path() : folder).string();
}

}  // namespace cudp
