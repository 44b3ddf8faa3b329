#pragma once

namespace cudp {

/// Arithmetic of matrix products in layers. fp32: float32 throughout. tf32: tensor cores, which
/// multiply numbers rounded to a mantissa of 10 bits and add the products in float32.
enum class Precision { fp32, tf32 };

}  // namespace cudp
