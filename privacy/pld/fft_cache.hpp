#pragma once
#include <cstddef>
#include <memory>

#include "privacy/pld/fft.hpp"

namespace cudp::privacy::pld {

/// Returns the Fourier transform of this length. Each thread caches its newest ones, because the
/// tables of a transform take as long to compute as the transform itself.
std::shared_ptr<const Fft> fft_of(std::size_t length);

}  // namespace cudp::privacy::pld
