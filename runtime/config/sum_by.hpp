#pragma once

namespace cudp {

/// How gradient sums are added over several ranks that train on CUDA: on the host, between two
/// recorded CUDA graphs, or by the library NCCL, inside a recorded graph. automatic: NCCL if all
/// ranks can use it, else on the host.
enum class SumBy { automatic, host, nccl };

}  // namespace cudp
