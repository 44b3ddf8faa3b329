#pragma once

namespace cudp {

/// Implementation of convolutions in a CUDA evaluation: cudp's kernels, or cuDNN if this machine
/// has it.
enum class EvaluateWith { ours, cudnn };

}  // namespace cudp
