#pragma once
#include <cstddef>
#include <memory>

#include "privacy/pld/fft.hpp"

namespace cudp::privacy::pld {

/// Returns the transform of this length. The last ones used in this thread are kept, because making
/// the tables costs as much as a transform.
std::shared_ptr<const Fft> fft_of(std::size_t length);

}  // namespace cudp::privacy::pld
