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

/// Kind of device on which a run can train (CPU or CUDA), with the functions that make engines for
/// it.
struct Backend {
  std::string name;  ///< "cpu" or "cuda"
  /// Returns a description of how the backend adds up the squares of a gradient to get its norm.
  /// The bound on the rounding error of norms depends on it.
  std::function<Arithmetic(const Network& network)> arithmetic;
  EngineFactory make_engine;
  /// Returns the precision of the matrix products that the backend uses for a network. requested:
  /// the user's setting. transforms: whether gradients are transformed before they are clipped
  /// (coordinate-wise clipping).
  std::function<Precision(const Network& network, Precision requested, bool transforms)> precision;
  /// Computes the scattering features (fixed wavelet features) of images: [number of images, size
  /// of scattered_shape(shape)]. threads: number of threads, on the CPU only. done: called with the
  /// share of the work that is done.
  std::function<std::vector<float>(const Dataset& images, int threads, const WorkDone& done)>
      scatter;
  /// Makes an engine that trains a linear model of two classes: it computes sums over the whole
  /// training set or over batches of it. max_examples: public upper bound on the number of
  /// examples. threads: number of threads, on the CPU only. weights: weights of the two classes.
  std::function<std::unique_ptr<LinearEngine>(const Dataset& train, Loss loss, double max_examples,
                                              int threads, SignWeights weights)>
      make_linear_engine;
  /// Name of the backend's arithmetic, e.g. the CPU's SIMD instructions or the kind of GPU.
  /// Backends with the same name, of the same build, compute identical bits at the same precision.
  std::string arithmetic_name;
  /// Returns a text that identifies the external libraries (cuBLAS, cuFFT) that affect the bits of
  /// a run's results: their versions, and the properties of the machine by which they choose their
  /// kernels. It becomes part of the run's arithmetic_name. scatters: whether scattering features
  /// are computed. Null if the backend uses no such library.
  std::function<std::string(const Network& network, bool scatters)> library_arithmetic = {};
};

/// Function that prints a line of text for the user.
using ReportLine = std::function<void(const std::string& line)>;

/// Returns the backend for the requested device. Device::automatic means the first CUDA device if
/// this build supports CUDA and that device is new enough, otherwise the CPU. say: function that
/// CUDA engines of the backend call with lines for the user about the device. Throws InputError if
/// a CUDA device is requested by name and cannot be used.
Backend choose_backend(Device requested, const ReportLine& say = {});

/// Returns whether the requested CUDA device can be used. devices: all CUDA devices of the machine.
/// Throws InputError if the user requested CUDA by name and the device cannot be used.
bool can_use(Device requested, const std::vector<DeviceInfo>& devices);

/// For tests on machines without a CUDA device: makes this process see `backend` as the machine's
/// only CUDA device. It is used if CUDA is requested by name; if is_found, also if the device is
/// chosen automatically. A backend with the name "cpu" also replaces the CPU. Null restores the
/// machine's own devices.
void replace_cuda(const Backend* backend, bool is_found = false);

}  // namespace cudp
