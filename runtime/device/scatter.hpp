#pragma once
#include <functional>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace cudp {

/// Progress callback. It is called by the calling thread from time to time, with the share of the
/// work that is done, 0 to 1.
using WorkDone = std::function<void(double share)>;

/// Returns the scattering features (kernels/features/scatter.hpp) of every image: [size,
/// scattered_shape(shape)]. threads: 0 for all cores; the result does not depend on it. Throws
/// std::invalid_argument on images smaller than 4 x 4.
std::vector<float> scatter_on_cpu(const Dataset& images, int threads, const WorkDone& done);

/// Returns the scattering features of every image, computed on a CUDA device. Throws Error if this
/// build or machine has none that is usable.
std::vector<float> scatter_on_cuda(const Dataset& images, const WorkDone& done, int device = 0);

}  // namespace cudp
