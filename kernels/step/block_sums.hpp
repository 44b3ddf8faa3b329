#pragma once
#include <cstdint>

#include "kernels/common/launch.hpp"

namespace cudp {

/// The sums that the blocks of a launch have left behind, part of the batch's.
struct BlockSums {
  Batch batch{};  ///< as FusedSum's (kernels/fused/fused.hpp), and so the others
  const std::int32_t* slabs = nullptr;  ///< or null for none
  int turn = 1;
  int blocks = 0;
};

/// Slabs that were written.
CUDP_HD int written_slabs(const BlockSums& a) {
  const int turns = (live_examples(a.batch) + a.turn - 1) / a.turn;
  return turns < a.blocks ? turns : a.blocks;
}

inline void validate(const BlockSums& a) {
  if (a.slabs == nullptr) return;
  validate(a.batch);
  expect(a.blocks > 0 && a.turn > 0, "block sums: expected blocks of the slabs");
}

}  // namespace cudp
