#pragma once
// Check that a device's BLAS gives a row of a product the same bits at any position in a slab. An
// example's numbers must depend on nothing else. BLAS does not guarantee this, so each product that
// a network makes by BLAS is checked.
#include <functional>
#include <string>

#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/layout.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Returns the choices for a network. BLAS is switched off, and `say` is called with a line about
/// it, if the bits of a row depend on its position. Prepares BLAS if it is used.
LayoutChoices with_checked_blas(Gpu& gpu, const Network& network, LayoutChoices choices,
                                const std::function<void(const std::string&)>& say);

}  // namespace cudp::cuda::inline CUDP_SIMT
