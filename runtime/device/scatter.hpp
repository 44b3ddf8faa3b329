#pragma once
#include <functional>
#include <vector>

#include "runtime/data/dataset.hpp"

namespace cudp {

/// Told the share of the work that is done, from time to time, by the calling thread.
using WorkDone = std::function<void(double share)>;

/// Scattering features (kernels/features/scatter.hpp) of every image: [size,
/// scattered_shape(shape)]. threads: 0 takes every core; the result does not depend on it. Throws
/// std::invalid_argument on images smaller than 4 x 4.
std::vector<float> scatter_on_cpu(const Dataset& images, int threads, const WorkDone& done);

/// Makes the transform on a CUDA device. Throws Error if this build or machine has no usable one.
std::vector<float> scatter_on_cuda(const Dataset& images, const WorkDone& done, int device = 0);

}  // namespace cudp
