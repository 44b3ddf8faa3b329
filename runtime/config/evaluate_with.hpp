#pragma once

namespace cudp {

/// Kernels that compute convolutions and recurrent layers when a model is evaluated on CUDA: cudp's
/// own (ours), or those of the library cuDNN, which must then be installed.
enum class EvaluateWith { ours, cudnn };

}  // namespace cudp
