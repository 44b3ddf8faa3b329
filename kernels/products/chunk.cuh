#pragma once
// Planes of an image on their way to shared memory, for products by tensor cores in fp16.
#include "kernels/common/half_core.cuh"
#include "kernels/common/lanes.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/products/patch_gradient.hpp"

namespace cudp::inline CUDP_SIMT {

/// Eight consecutive channels of a pixel in fp16: a row of a matrix that ldmatrix reads.
struct alignas(16) Chunk {
  u32 pairs[kChunkChannels / 2];
};

/// Returns the chunk of a pixel, times `scale`, rounded to fp16; zeros for channels that do not
/// exist. at: the pixel in the first channel. plane: distance between channels [floats]. channels:
/// number of channels from the first one on.
__device__ __forceinline__ Chunk load_chunk(const float* at, int plane, int channels, float scale) {
  float v[kChunkChannels];
  CUDP_UNROLL for (int c = 0; c < kChunkChannels; ++c, at += plane) {
    v[c] = c < channels ? *at : 0.0f;
  }
  Chunk chunk;
  CUDP_UNROLL for (int c = 0; c < kChunkChannels; c += 2) {
    chunk.pairs[c / 2] = halves(v[c] * scale, v[c + 1] * scale);
  }
  return chunk;
}

/// Adds the product of a fragment a [16, 16] and a fragment b [16, 8] to the fragment of `cell` in
/// row m and column n of a warp's fragments. cell: the thread's numbers.
template <int rows, int columns>
__device__ __forceinline__ void add_product(float (&cell)[rows][columns], int m, int n,
                                            const u32 (&a)[4], const u32 (&b)[2]) {
  float* const top = &cell[2 * m][2 * n];
  float* const bottom = &cell[2 * m + 1][2 * n];
  float d[4] = {top[0], top[1], bottom[0], bottom[1]};
  multiply_add(d, a, b);
  top[0] = d[0], top[1] = d[1], bottom[0] = d[2], bottom[1] = d[3];
}

}  // namespace cudp::inline CUDP_SIMT
