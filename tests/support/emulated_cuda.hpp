#pragma once
#include "runtime/device/backend.hpp"

namespace cudp {

/// Returns the backend that replaces CUDA under the emulator (replace_cuda), in float32. Its
/// scattering features are the CPU's. Not in cudp_gpu_tests. Defined in test_device.cpp.
const Backend& emulated_cuda();

}  // namespace cudp
