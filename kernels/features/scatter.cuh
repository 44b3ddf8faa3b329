#pragma once
#include "kernels/common/fixed_point.cuh"
#include "kernels/common/simt.cuh"
#include "kernels/features/scatter.hpp"

namespace cudp::inline CUDP_SIMT {

// Converts planes of pixels to complex images. grid, block: any. smem: none.
__global__ inline void scatter_load_kernel(ScatterLoad a) {
  for_each_number(static_cast<std::int64_t>(a.planes) * a.rows * a.columns, [&](std::int64_t i) {
    const std::int64_t line = i / a.columns;
    const std::int64_t plane = line / a.rows;
    const std::int64_t from =
        (plane * a.height + a.row_from[line % a.rows]) * a.width + a.column_from[i % a.columns];
    a.out[i] = {
        a.bytes != nullptr ? a.scale * static_cast<float>(a.bytes[from]) + a.shift : a.floats[from],
        0.0f};
  });
}

// Multiplies spectra of images by those of wavelets. grid, block: any. smem: none.
__global__ inline void scatter_filter_kernel(ScatterFilter a) {
  const std::int64_t pixels = static_cast<std::int64_t>(a.rows) * a.columns;
  const int copies = 1 << a.level;
  const std::int64_t columns = static_cast<std::int64_t>(a.columns) * copies;
  const std::int64_t spectrum = columns * a.rows * copies;
  for_each_number(std::int64_t{a.images} * kScatterAngles * pixels, [&](std::int64_t i) {
    const std::int64_t filter =
        i / pixels;  // index of the image, times 8, plus that of the wavelet's angle
    const std::int64_t y = i % pixels / a.columns;
    const std::int64_t x = i % a.columns;
    const ComplexFloat* const f = a.spectra + filter / kScatterAngles * spectrum;
    const float* const psi = a.psi + filter % kScatterAngles * spectrum;
    ComplexFloat sum{0.0f, 0.0f};
    for (int down = 0; down < copies; ++down)
      for (int right = 0; right < copies; ++right) {
        const std::int64_t at = (y + static_cast<std::int64_t>(down) * a.rows) * columns + x +
                                static_cast<std::int64_t>(right) * a.columns;
        sum.re += f[at].re * psi[at];
        sum.im += f[at].im * psi[at];
      }
    a.out[i] = sum;
  });
}

// Replaces complex numbers by their moduli. grid, block: any. smem: none.
__global__ inline void scatter_modulus_kernel(ScatterModulus a) {
  for_each_number(a.count, [&](std::int64_t i) {
    const ComplexFloat z = a.z[i];
    a.z[i] = {sqrtf(z.re * z.re + z.im * z.im), 0.0f};
  });
}

// Applies the low-pass filter, and keeps every fourth pixel (ScatterLowPass). grid: planes *
// channels. block: any. dynamic smem: out_height * columns floats.
__global__ inline void scatter_low_pass_kernel(ScatterLowPass a) {
  CUDP_DYNAMIC_SMEM(float, filtered);  // [out_height, columns]
  const auto plane = static_cast<std::int64_t>(blockIdx.x) / a.channels;
  const int channel = a.first_channel + static_cast<int>(blockIdx.x) % a.channels;
  const ComplexFloat* const image =
      a.images + static_cast<std::int64_t>(blockIdx.x) * a.rows * a.columns;
  // Returns the weight of input j in output o. table is ScatterTables::low_rows or low_columns,
  // whose lines have n inputs.
  const auto weight = [](const float* table, int n, int o, int j) {
    return table[(o / kLowPassBlock * n + j) * kLowPassBlock + o % kLowPassBlock];
  };
  for (auto i = static_cast<int>(threadIdx.x); i < a.out_height * a.columns;
       i += static_cast<int>(blockDim.x)) {
    const int o = i / a.columns;
    const int x = i % a.columns;
    float sum = 0.0f;
    for (int y = 0; y < a.rows; ++y)
      sum += weight(a.row_table, a.rows, o, y) * image[y * a.columns + x].re;
    filtered[i] = sum;
  }
  __syncthreads();
  const int pixels = a.out_height * a.out_width;
  float* const out = a.out + (plane * kScatterChannels + channel) * pixels;
  for (auto i = static_cast<int>(threadIdx.x); i < pixels; i += static_cast<int>(blockDim.x)) {
    const int o = i % a.out_width;
    const int first = i / a.out_width * a.columns;
    const float* const line = filtered + first;
    float sum = 0.0f;
    for (int x = 0; x < a.columns; ++x) sum += weight(a.column_table, a.columns, o, x) * line[x];
    out[i] = sum;
  }
}

}  // namespace cudp::inline CUDP_SIMT
