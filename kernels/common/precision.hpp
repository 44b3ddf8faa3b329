#pragma once

namespace cudp {

/// Arithmetic of products in convolutions and dense layers. tf32 uses tensor cores: operands are
/// rounded to a mantissa of 10 bits, sums are float32.
enum class Precision { fp32, tf32 };

}  // namespace cudp
