#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/device/cuda/devices.hpp"
#include "runtime/device/engine.hpp"
#include "runtime/device/linear_engine.hpp"
#include "runtime/device/scatter.hpp"
#include "runtime/device/sensitivity.hpp"

namespace cudp {

using EngineFactory =
    std::function<std::unique_ptr<Engine>(const Network& network, const EngineSettings& settings)>;

/// A kind of device that can train.
struct Backend {
  std::string name;  ///< "cpu" or "cuda"
  std::function<Arithmetic(const Network& network)> arithmetic;
  EngineFactory make_engine;
  /// The precision that a network is multiplied in where `requested` was asked for. transforms:
  /// gradients are transformed before they are clipped.
  std::function<Precision(const Network& network, Precision requested, bool transforms)> precision;
  /// Scattering features of images; threads is for the CPU.
  std::function<std::vector<float>(const Dataset& images, int threads, const WorkDone& done)>
      scatter;
  /// For methods that work on all examples of a linear model at once. max_examples: see
  /// linear_engine.hpp; threads and weights are for the CPU.
  std::function<std::unique_ptr<LinearEngine>(const Dataset& train, Loss loss, double max_examples,
                                              int threads, SignWeights weights)>
      make_linear_engine;
  /// Backends of one name, of one build, compute the same bits, at the same precision.
  std::string arithmetic_name;
};

/// Tells the user one line.
using Say = std::function<void(const std::string& line)>;

/// automatic: the first CUDA device where this build and this machine have one that is new enough,
/// else the CPU. say: who engines tell of the device. Throws InputError where CUDA is asked for and
/// is not there, or has no device of that number.
Backend choose_backend(Device requested, const Say& say = {});

/// Whether the CUDA device that is requested can be used, of all that there are. Throws InputError
/// where it is asked for by name and cannot.
bool can_use(Device requested, const std::vector<DeviceInfo>& devices);

/// The device for work that CUDA does not do yet, which is the CPU. what: in the plural, "audits".
/// Says so where automatic would have taken CUDA. Throws InputError where CUDA is asked for.
Device cpu_alone(Device requested, const std::string& what, const Say& say);

/// For tests where there is no CUDA device: what this process has where CUDA is asked for by name
/// and, if it is found, also where the device is chosen; null for what the machine has. It is one
/// device.
void replace_cuda(const Backend* backend, bool is_found = false);

}  // namespace cudp
