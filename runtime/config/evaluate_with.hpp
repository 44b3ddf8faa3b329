#pragma once

namespace cudp {

/// What multiplies a CUDA evaluation's convolutions: our kernels, or a library that this machine
/// has.
enum class EvaluateWith { ours, cudnn };

}  // namespace cudp
