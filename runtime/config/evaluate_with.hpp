#pragma once

namespace cudp {

/// Whose kernels compute convolutions and recurrent layers when a model is evaluated on CUDA:
/// cudp's own, or those of the library cuDNN, which must be installed.
enum class EvaluateWith { ours, cudnn };

}  // namespace cudp
