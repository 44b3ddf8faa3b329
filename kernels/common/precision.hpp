#pragma once

namespace cudp {

/// What convolutions and dense layers are multiplied in. tf32: by tensor cores, operands rounded to
/// a mantissa of 10 bits, sums in float32.
enum class Precision { fp32, tf32 };

}  // namespace cudp
