#pragma once
#include <functional>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace cudp {

/// Progress callback: called from time to time, on the thread that started the work, with the share
/// of the work that is done, 0 to 1.
using WorkDone = std::function<void(double share)>;

/// Returns the scattering features (fixed wavelet features) of every image: [number of images, size
/// of scattered_shape(shape)]. threads: number of threads, 0 for all cores; the result does not
/// depend on it. done: called with the progress. Throws std::invalid_argument if images are smaller
/// than 4 x 4 pixels.
std::vector<float> scatter_on_cpu(const Dataset& images, int threads, const WorkDone& done);

/// Returns the scattering features (fixed wavelet features) of every image, computed on a CUDA
/// device: [number of images, size of scattered_shape(shape)]. Throws Error if this build does not
/// support CUDA, or this machine has no device that can be used. done: progress callback.
std::vector<float> scatter_on_cuda(const Dataset& images, const WorkDone& done, int device = 0);

}  // namespace cudp
