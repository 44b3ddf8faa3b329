#pragma once
#include <string>
#include <string_view>

#include "privacy/mechanism/mechanism.hpp"

namespace cudp::privacy {

/// Returns the mechanism's name and fields as text, numbers in hexadecimal so that they are exact:
/// "poisson-gaussian 1.47ae147ae147bp-7 1p+0". The forms are:
///
/// gaussian SIGMA, poisson-gaussian Q SIGMA, fixed-size-gaussian N BATCH SIGMA,
/// truncated-poisson-gaussian N Q MAX_BATCH SIGMA, laplace SCALE, poisson-laplace Q SCALE,
/// bounded-range EPSILON, approximate-dp EPSILON DELTA, gaussian-mixture SIGMA SIZE SENSITIVITY
/// PROBABILITY SENSITIVITY PROBABILITY ...
std::string exact_text(const Mechanism& mechanism);

/// Reads the mechanism at the start of `line` and removes its text from `line`. Throws
/// std::invalid_argument, "expected ..., found ...", on text that exact_text() does not write, and
/// on fields out of range.
Mechanism take_mechanism(std::string_view& line);

}  // namespace cudp::privacy
