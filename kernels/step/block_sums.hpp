#pragma once
#include <cstdint>

#include "kernels/common/launch.hpp"

namespace cudp {

/// The partial sums of a batch's clipped gradients that a fused kernel has written: an array of d
/// integers (a slab) for each thread block that had examples, with d the number of parameters. The
/// integers count multiples of the grid, the power of two to whose multiples each gradient is
/// rounded (SumScale::grid).
struct BlockSums {
  Batch batch{};                        ///< fields as in FusedSum (kernels/fused/fused.hpp)
  const std::int32_t* slabs = nullptr;  ///< [blocks, d] partial sums; null if no fused kernel ran
  int stripe = 1;  ///< number of consecutive examples that a block is assigned at a time
  int blocks = 0;
};

/// Returns the number of thread blocks that had examples. Only these have written a partial sum.
CUDP_HD int written_slabs(const BlockSums& a) {
  const int stripes = (live_examples(a.batch) + a.stripe - 1) / a.stripe;
  return stripes < a.blocks ? stripes : a.blocks;
}

inline void validate(const BlockSums& a) {
  if (a.slabs == nullptr) return;
  validate(a.batch);
  expect(a.blocks > 0 && a.stripe > 0,
         "block sums: expected blocks and stripe > 0, because there are slabs of partial sums");
}

}  // namespace cudp
