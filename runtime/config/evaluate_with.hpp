#pragma once

namespace cudp {

/// Kernels for convolutions and recurrent layers when a model is evaluated on CUDA: cudp's own, or
/// cuDNN's, which must be installed.
enum class EvaluateWith { ours, cudnn };

}  // namespace cudp
