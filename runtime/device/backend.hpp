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

/// Device on which a run can train, with the functions that make engines for it.
struct Backend {
  std::string name;  ///< "cpu" or "cuda"
  /// Returns how the backend adds up the squares of a gradient norm, from which sensitivity.hpp
  /// bounds the rounding error of the norm.
  std::function<Arithmetic(const Network& network)> arithmetic;
  EngineFactory make_engine;
  /// Returns the precision that the backend uses for a network's products if `requested` is the
  /// user's setting. transforms: whether gradients are transformed before they are clipped.
  std::function<Precision(const Network& network, Precision requested, bool transforms)> precision;
  /// Computes scattering features of images. threads: CPU only.
  std::function<std::vector<float>(const Dataset& images, int threads, const WorkDone& done)>
      scatter;
  /// Makes an engine for a linear model of two classes, which sums over the whole training set or
  /// over batches of it. max_examples: public upper bound on the number of examples. threads:
  /// number of threads, CPU only. weights: weights of the two classes.
  std::function<std::unique_ptr<LinearEngine>(const Dataset& train, Loss loss, double max_examples,
                                              int threads, SignWeights weights)>
      make_linear_engine;
  /// Name of the arithmetic. Backends of the same name and the same build compute identical bits at
  /// the same precision.
  std::string arithmetic_name;
  /// Returns the part of a run's arithmetic_name that names external libraries (cuBLAS, cuFFT):
  /// their versions, and what their choice of kernels may depend on. scatters: whether scattering
  /// features are computed. Null if the backend uses no such library.
  std::function<std::string(const Network& network, bool scatters)> library_arithmetic = {};
};

/// Prints one line for the user.
using ReportLine = std::function<void(const std::string& line)>;

/// Returns the backend for the requested device. Device::automatic gives the first CUDA device if
/// this build supports CUDA and the device is new enough, else the CPU. say: receives the engines'
/// lines about the device. Throws InputError if CUDA is requested and is not available, or has no
/// device of that number.
Backend choose_backend(Device requested, const ReportLine& say = {});

/// Returns whether the requested CUDA device can be used. devices: all CUDA devices of the machine.
/// Throws InputError if the user requested CUDA by name and the device cannot be used.
bool can_use(Device requested, const std::vector<DeviceInfo>& devices);

/// Replaces the machine's CUDA device in this process, for tests without one. `backend` is used if
/// CUDA is requested by name and, if is_found, also if the device is chosen automatically. Null
/// restores the machine's own devices. `backend` counts as a single device.
void replace_cuda(const Backend* backend, bool is_found = false);

}  // namespace cudp
