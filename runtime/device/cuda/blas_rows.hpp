#pragma once
// Whether a device's BLAS gives a row of a product the same bits wherever it lies in a slab. An
// example's numbers must depend on nothing else: nobody promises that of BLAS, so it is asked of
// each product that a network has of it.
#include <functional>
#include <string>

#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/layout.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// The choices for a network: without BLAS, which `say` is told, where a row's bits depend on its
/// place. Prepares BLAS where it is used.
LayoutChoices with_checked_blas(Gpu& gpu, const Network& network, LayoutChoices choices,
                                const std::function<void(const std::string&)>& say);

}  // namespace cudp::cuda::inline CUDP_SIMT
