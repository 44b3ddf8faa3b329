#pragma once

namespace cudp {

/// Which convolution kernels evaluate a model on CUDA: cudp's own, or cuDNN's if the machine has
/// them.
enum class EvaluateWith { ours, cudnn };

}  // namespace cudp
