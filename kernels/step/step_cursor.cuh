#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/step/step_cursor.hpp"

namespace cudp::inline CUDP_SIMT {

// grid, block: one thread. smem: none.
__global__ inline void begin_step_kernel(BeginStep a) {
  a.cursor->step = a.cursor->first + a.cursor->index;
  a.cursor->scalars = a.list[a.cursor->index];
  ++a.cursor->index;
}

// grid, block: one thread. smem: none.
__global__ inline void watch_batch_kernel(WatchBatch a) {
  if (*a.count > a.capacity) a.cursor->failed = 1;
}

}  // namespace cudp::inline CUDP_SIMT
