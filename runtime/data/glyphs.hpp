#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/data/dataset.hpp"

namespace cudp {

/// Makes images of the built-in data set: 28 x 28 grey images of the ten digits, drawn as strokes
/// under random affine maps, with jittered shapes, stray strokes, uneven light, blur and noise.
/// Image i shows the digit i % 10, and is a function of seed and i alone, bit for bit the same on
/// every machine. Returns images first to first + count - 1.
Dataset make_glyphs(std::uint64_t seed, std::size_t first, std::size_t count);

}  // namespace cudp
