#pragma once
#include "kernels/common/simt.cuh"
#include "kernels/layers/recurrent_batch.hpp"

namespace cudp::inline CUDP_SIMT {

// Computes the last state, or the mean of the states, of each text. grid: examples. block: 128, one
// thread per channel. smem: none.
__global__ inline void text_states_kernel(device::TextStates a) {
  const auto e = static_cast<std::int64_t>(blockIdx.x);
  if (e >= live_examples(a.batch)) return;
  const int channels = a.directions * a.hidden;
  const int length = a.length[e];
  const float* const y = a.y + e * a.places * channels;
  float* const out = a.out + e * a.planes.size();
  for (auto c = static_cast<int>(threadIdx.x); c < channels; c += static_cast<int>(blockDim.x)) {
    const bool is_reverse = c >= a.hidden;
    float state = 0.0f;
    if (a.output == device::StatesOut::mean) {
      for (int s = 0; s < length; ++s) state += y[(is_reverse ? length - 1 - s : s) * channels + c];
      if (length > 0) state /= static_cast<float>(length);
    } else if (length > 0) {
      state = y[(is_reverse ? 0 : length - 1) * channels + c];
    }
    out[a.planes.pixel_offset(c)] = state;
  }
}

}  // namespace cudp::inline CUDP_SIMT
