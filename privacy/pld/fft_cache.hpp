#pragma once
#include <cstddef>
#include <memory>

#include "privacy/pld/fft.hpp"

namespace cudp::privacy::pld {

/// Returns an object that computes Fourier transforms of this length. Each thread caches its newest
/// ones, because making the tables takes as long as a transform.
std::shared_ptr<const Fft> fft_of(std::size_t length);

}  // namespace cudp::privacy::pld
