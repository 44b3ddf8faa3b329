#pragma once

namespace cudp::bench {

/// Registers benchmarks of the CUDA toolkit's libraries (cuBLAS, cuDNN, ...) on the same work as
/// kernels of this project, to compare the times. Includes the libraries whose headers this build
/// has. A benchmark whose library is missing on this machine is skipped, with a message.
void register_baselines();

}  // namespace cudp::bench
