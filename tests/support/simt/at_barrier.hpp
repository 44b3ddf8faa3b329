#pragma once
#include <functional>

namespace simt {

/// Called whenever all threads of a block wait at a __syncthreads. n: number of barriers that the
/// block has passed before. shared: its dynamic shared memory.
using AtBarrier = std::function<void(unsigned n, unsigned char* shared)>;
/// Sets what all launches from now on call; null for nothing.
void set_at_barrier(AtBarrier call);

}  // namespace simt
