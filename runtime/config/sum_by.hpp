#pragma once

namespace cudp {

/// What adds up the sums of ranks that train on CUDA: the host, between two recordings, or NCCL,
/// inside the recorded step. automatic: NCCL where all ranks can.
enum class SumBy { automatic, host, nccl };

}  // namespace cudp
