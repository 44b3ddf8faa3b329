#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/products/conv2d.hpp"

// Faster convolutions with one input channel and at most 16 output channels. In the general product
// (GatherGemm) each fused multiply-add needs a load, because one broadcast input is multiplied with
// one vector of weights only, and loads are the bottleneck. But neighbouring output pixels read the
// same inputs. Here the weights of one kernel row stay in registers, and each input is broadcast
// once for all pixels and taps (kernel positions) that use it: 34 broadcasts for 112 multiply-adds
// in an 8 x 8 kernel with stride 2. Measurements (AVX-512, 4.2 GHz, 28 x 28 -> 14 x 14 x 16) are in
// bench/results.

namespace cudp::CUDP_SIMD {
namespace {

#if defined(__AVX512F__)

constexpr int kForwardPixels = 14;  // + 8 weights + 1 input: 23 registers
constexpr int kWeightPixels = 7;    // vectors of dy, + 2 rows of 8 sums + 2 inputs: 25 registers

/// Computes R neighbouring pixels of one output row, for a kernel of K x K pixels with stride S,
/// and writes them to y, kLanes output channels per pixel. x: first input pixel under the kernel;
/// rows of the input are x_row floats apart. w: weights, [K, K, kLanes]. bias: [kLanes].
template <int K, int S, int R>
void forward_pixels(const float* x, std::int64_t x_row, const float* w, Vec bias, float* y) {
  Vec acc[R];
#pragma GCC unroll 16
  for (int p = 0; p < R; ++p) acc[p] = bias;
  for (int ky = 0; ky < K; ++ky) {
    Vec weight[K];
#pragma GCC unroll 16
    for (int kx = 0; kx < K; ++kx) weight[kx] = load(w + std::ptrdiff_t{ky * K + kx} * kLanes);
    const float* row = x + ky * x_row;
#pragma GCC unroll 64
    for (int i = 0; i < (R - 1) * S + K; ++i) {
      const Vec input = broadcast(row[i]);
#pragma GCC unroll 16
      for (int kx = 0; kx < K; ++kx)
        if (i >= kx && (i - kx) % S == 0 && (i - kx) / S < R)
          acc[(i - kx) / S] += input * weight[kx];
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < R; ++p) store(y + std::ptrdiff_t{p} * kLanes, acc[p]);
}

/// Adds to acc what R neighbouring pixels of one output row contribute to the weight gradient: for
/// kernel row r of Rows, and each of its K positions, the sum of x dy. x: first input pixel under
/// row 0. dy: gradient of the R output pixels, [R, kLanes]. acc: [Rows][K], kLanes output channels
/// each. S: stride. x_row: distance between rows of the input [floats].
template <int K, int S, int R, int Rows>
CUDP_INLINE void weight_pixels(const float* x, std::int64_t x_row, const float* dy,
                               Vec (&acc)[Rows][K]) {
  Vec g[R];
#pragma GCC unroll 16
  for (int p = 0; p < R; ++p) g[p] = load(dy + std::ptrdiff_t{p} * kLanes);
#pragma GCC unroll 64
  for (int i = 0; i < (R - 1) * S + K; ++i)
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) {
      const Vec input = broadcast(x[r * x_row + i]);
#pragma GCC unroll 16
      for (int kx = 0; kx < K; ++kx)
        if (i >= kx && (i - kx) % S == 0 && (i - kx) / S < R) acc[r][kx] += input * g[(i - kx) / S];
    }
}

template <int K, int S, int R = 1>
void forward_of(int pixels, const float* x, std::int64_t x_row, const float* w, Vec bias,
                float* y) {
  if constexpr (R <= kForwardPixels) {
    if (pixels == R) return forward_pixels<K, S, R>(x, x_row, w, bias, y);
    forward_of<K, S, R + 1>(pixels, x, x_row, w, bias, y);
  }
}

template <int K, int S>
void forward_rows(const Convolution& c) {
  const Vec bias = load(c.product.bias);
  const int parts = (c.out.width + kForwardPixels - 1) / kForwardPixels;
  for (int y = 0; y < c.out.height; ++y)
    for (int part = 0; part < parts; ++part) {
      const int first = c.out.width * part / parts;
      const int last = c.out.width * (part + 1) / parts;
      forward_of<K, S>(last - first,
                       c.product.a + c.in.at(y * S - c.in.border, first * S - c.in.border),
                       c.in.row(), c.product.b, bias, c.product.out + c.out.at(y, first));
    }
}

template <int K, int S, int Rows, int R = 1>
CUDP_INLINE void weight_of(int pixels, const float* x, std::int64_t x_row, const float* dy,
                           Vec (&acc)[Rows][K]) {
  if constexpr (R <= kWeightPixels) {
    if (pixels == R) return weight_pixels<K, S, R, Rows>(x, x_row, dy, acc);
    weight_of<K, S, Rows, R + 1>(pixels, x, x_row, dy, acc);
  }
}

template <int K, int S, int Rows>
void weight_kernel_rows(const Convolution& c, int ky) {
  Vec acc[Rows][K] = {};
  const int parts = (c.out.width + kWeightPixels - 1) / kWeightPixels;
  for (int y = 0; y < c.out.height; ++y)
    for (int part = 0; part < parts; ++part) {
      const int first = c.out.width * part / parts;
      const int last = c.out.width * (part + 1) / parts;
      weight_of<K, S, Rows>(
          last - first, c.product.a + c.in.at(y * S + ky - c.in.border, first * S - c.in.border),
          c.in.row(), c.product.b + c.out.at(y, first), acc);
    }
  for (int r = 0; r < Rows; ++r)
    for (int kx = 0; kx < K; ++kx)
      store(c.product.out + std::ptrdiff_t{(ky + r) * K + kx} * kLanes, acc[r][kx]);
}

template <int K, int S>
void weight_rows(const Convolution& c) {
  int ky = 0;
  for (; ky + 2 <= K; ky += 2) weight_kernel_rows<K, S, 2>(c, ky);
  if constexpr (K % 2 != 0) weight_kernel_rows<K, S, 1>(c, ky);
}

/// Calls the function that is specialised for the kernel's size and stride, if there is one: way3
/// for 3 x 3 with stride 1, way5 for 5 x 5 with stride 1, way8 for 8 x 8 with stride 2. Each of
/// them takes `c`, the arguments of the kernel, and does the whole work. Returns false, and calls
/// none, if the input has more than one channel, the output more than kLanes, or the kernel another
/// size or stride.
template <class Way3, class Way5, class Way8>
bool narrow(const Convolution& c, Way3 way3, Way5 way5, Way8 way8) {
  if (c.in.stride != 1 || c.out.stride != kLanes) return false;
  if (c.kernel == 3 && c.stride == 1) return way3(c), true;
  if (c.kernel == 5 && c.stride == 1) return way5(c), true;
  if (c.kernel == 8 && c.stride == 2) return way8(c), true;
  return false;
}

bool narrow_forward(const Convolution& c) {
  return narrow(c, forward_rows<3, 1>, forward_rows<5, 1>, forward_rows<8, 2>);
}
bool narrow_weight_gradient(const Convolution& c) {
  return narrow(c, weight_rows<3, 1>, weight_rows<5, 1>, weight_rows<8, 2>);
}

#else  // 16 registers are too few for the weights of a kernel row and the sums

bool narrow_forward(const Convolution&) { return false; }
bool narrow_weight_gradient(const Convolution&) { return false; }

#endif

}  // namespace

void conv_forward(const Convolution& c) {
  if (!narrow_forward(c)) gather_gemm(c.product);
}

void conv_weight_gradient(const Convolution& c) {
  if (!narrow_weight_gradient(c)) gather_gemm(c.product);
}

}  // namespace cudp::CUDP_SIMD
