#pragma once
#include <cstdint>

#include "kernels/common/launch.hpp"

namespace cudp {

/// Partial sums of a batch's clipped gradients that a fused kernel has written: one array of d
/// integers (a slab) for each thread block that had examples, in units of the sum's grid.
struct BlockSums {
  Batch batch{};                        ///< fields as in FusedSum (kernels/fused/fused.hpp)
  const std::int32_t* slabs = nullptr;  ///< [blocks, d] partial sums; null if no fused kernel ran
  int turn = 1;
  int blocks = 0;
};

/// Returns the number of thread blocks that had examples, so whose partial sums exist.
CUDP_HD int written_slabs(const BlockSums& a) {
  const int turns = (live_examples(a.batch) + a.turn - 1) / a.turn;
  return turns < a.blocks ? turns : a.blocks;
}

inline void validate(const BlockSums& a) {
  if (a.slabs == nullptr) return;
  validate(a.batch);
  expect(a.blocks > 0 && a.turn > 0,
         "block sums: expected blocks and turn > 0, because there are slabs of partial sums");
}

}  // namespace cudp
