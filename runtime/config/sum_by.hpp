#pragma once

namespace cudp {

/// Component that adds up the sums of ranks that train on CUDA: the host, between two recorded
/// graphs, or NCCL, inside the recorded step. automatic: NCCL if all ranks can use it.
enum class SumBy { automatic, host, nccl };

}  // namespace cudp
