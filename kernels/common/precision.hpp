#pragma once

namespace cudp {

/// The arithmetic of products in convolutions and dense layers. tf32: by tensor cores, operands
/// rounded to a mantissa of 10 bits, sums in float32.
enum class Precision { fp32, tf32 };

}  // namespace cudp
