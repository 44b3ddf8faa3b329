#pragma once

namespace cudp {

/// How sums are added over several ranks that train on CUDA: by the host, between two recorded CUDA
/// graphs, or by NCCL, inside the recorded graph. automatic: NCCL if all ranks can use it.
enum class SumBy { automatic, host, nccl };

}  // namespace cudp
