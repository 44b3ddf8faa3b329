#pragma once

namespace cudp {

/// flat: one bound C on the whole gradient. per_layer: C / sqrt(groups) on each parametric layer.
/// automatic: C / (norm + stability), no threshold (Bu et al. 2022, AUTO-S, eq. 4.1).
enum class Clipping { flat, per_layer, automatic };

struct ClipSettings {
  Clipping kind = Clipping::flat;
  float max_norm = 1.0f;    ///< C, gradient units, finite and > 0
  float stability = 0.01f;  ///< gamma of AUTO-S; finite and > 0
};

}  // namespace cudp
