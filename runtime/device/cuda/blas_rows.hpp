#pragma once
// Checks whether a device's BLAS computes the same bits for a row of a product at any position in a
// block of rows. Privacy requires this, because an example's numbers must depend on nothing else.
// BLAS does not guarantee it, so every product that a network computes by BLAS is checked.
#include <functional>
#include <string>

#include "runtime/device/cuda/gpu.hpp"
#include "runtime/device/cuda/layout.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Checks whether BLAS computes identical bits for a row of a matrix product wherever the row is in
/// the matrix. Returns `choices` if it does, or if no layer uses BLAS. Otherwise calls say() with a
/// line of text for the user, and returns a copy of `choices` with which no layer uses BLAS.
/// Initialises BLAS if a layer uses it. network: the network whose products are checked. choices:
/// options that determine how each layer is computed.
LayoutChoices with_checked_blas(Gpu& gpu, const Network& network, LayoutChoices choices,
                                const std::function<void(const std::string&)>& say);

}  // namespace cudp::cuda::inline CUDP_SIMT
