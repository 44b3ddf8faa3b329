#pragma once
#include "runtime/device/backend.hpp"

namespace cudp {

/// What `cudp train --device cuda` has under the emulator (replace_cuda), in float32; scattering
/// features are the CPU's. Not in cudp_gpu_tests. Made in test_device.cpp.
const Backend& emulated_cuda();

}  // namespace cudp
