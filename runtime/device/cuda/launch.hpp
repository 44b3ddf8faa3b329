#pragma once
#include "kernels/common/launch.hpp"
#include "runtime/device/cuda/gpu.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Launches a kernel that has one argument, a struct. Throws std::invalid_argument if
/// validate(args) finds a member that is missing or out of range. name: name of the kernel in error
/// messages. gpu: the device. shape: the launch shape.
template <class Args>
void launch(Gpu& gpu, const char* name, void (*kernel)(Args), const LaunchShape& shape,
            const Args& args) {
  validate(args);
  gpu.launch(name, kernel, shape, args);
}
/// Launches a kernel with the launch shape that launch_shape(args) chooses. gpu: the device. name:
/// name of the kernel in error messages.
template <class Args>
void launch(Gpu& gpu, const char* name, void (*kernel)(Args), const Args& args) {
  launch(gpu, name, kernel, launch_shape(args), args);
}
/// Launches a kernel with the launch shape that launch_shape(args) chooses, as a dependent launch:
/// it may begin before the previous launch has ended (CUDA's programmatic dependent launch). The
/// previous launch must be a kernel, too. The kernel must follow the rules of
/// kernels/common/dependent.cuh.
template <class Args>
void launch_dependent(Gpu& gpu, const char* name, void (*kernel)(Args), const Args& args) {
  validate(args);
  gpu.launch_dependent(name, kernel, launch_shape(args), args);
}

}  // namespace cudp::cuda::inline CUDP_SIMT
