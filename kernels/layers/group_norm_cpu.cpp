#include "kernels/common/cpu_kernel_list.hpp"
#include "kernels/common/vec.hpp"
#include "kernels/layers/group_norm.hpp"

// Each operation is a plain loop nest, which the compiler vectorises over a group's channels. Sums
// are in double, because a group may have many thousands of numbers.

namespace cudp::CUDP_SIMD {
namespace {

template <class F>
CUDP_INLINE void for_each_pixel(const ImageLayout& in, const ImageLayout& out, F f) {
  for (int y = 0; y < in.height; ++y)
    for (int x = 0; x < in.width; ++x) f(in.at(y, x), out.at(y, x));
}

/// Sets the padding channels of every pixel of `image` to 0. l: layout of the image.
CUDP_INLINE void clear_padding(const ImageLayout& l, float* image) {
  for (int y = 0; y < l.height; ++y)
    for (int x = 0; x < l.width; ++x)
      for (int c = l.channels; c < l.stride; ++c) image[l.at(y, x) + c] = 0.0f;
}

}  // namespace

void group_norm_forward(const GroupNormForward& p) {
  const int per_group = p.in.channels / p.groups;
  const double count = static_cast<double>(per_group) * p.in.height * p.in.width;
  for (int g = 0; g < p.groups; ++g) {
    const int c0 = g * per_group;
    double sum = 0.0;
    for_each_pixel(p.in, p.out, [&](std::int64_t in, std::int64_t) {
      for (int c = c0; c < c0 + per_group; ++c) sum += static_cast<double>(p.x[in + c]);
    });
    const double mean = sum / count;
    double squares = 0.0;
    for_each_pixel(p.in, p.out, [&](std::int64_t in, std::int64_t) {
      for (int c = c0; c < c0 + per_group; ++c) {
        const double d = static_cast<double>(p.x[in + c]) - mean;
        squares += d * d;
      }
    });
    const double inverse = 1.0 / __builtin_sqrt(squares / count + static_cast<double>(p.epsilon));
    p.mean[g] = static_cast<float>(mean);
    p.inverse[g] = static_cast<float>(inverse);
    for_each_pixel(p.in, p.out, [&](std::int64_t in, std::int64_t out) {
      for (int c = c0; c < c0 + per_group; ++c)
        p.y[out + c] = (p.x[in + c] - p.mean[g]) * p.inverse[g] * p.weight[c] + p.bias[c];
    });
  }
  clear_padding(p.out, p.y);
}

void group_norm_backward(const GroupNormBackward& p) {
  const int per_group = p.in.channels / p.groups;
  const double count = static_cast<double>(per_group) * p.in.height * p.in.width;
  for (int g = 0; g < p.groups; ++g) {
    const float mean = p.mean[g];
    const float inverse = p.inverse[g];
    double sum_dy = 0.0;         // sum of weight * dy
    double sum_dy_normed = 0.0;  // sum of weight * dy * normalised x
    for (int c = g * per_group; c < (g + 1) * per_group; ++c) {
      double dweight = 0.0;
      double dbias = 0.0;
      for_each_pixel(p.in, p.out, [&](std::int64_t in, std::int64_t out) {
        const double dy = static_cast<double>(p.dy[out + c]);
        dweight += dy * static_cast<double>((p.x[in + c] - mean) * inverse);
        dbias += dy;
      });
      p.dweight[c] = static_cast<float>(dweight);
      p.dbias[c] = static_cast<float>(dbias);
      sum_dy += static_cast<double>(p.weight[c]) * dbias;
      sum_dy_normed += static_cast<double>(p.weight[c]) * dweight;
    }
    if (p.dx == nullptr) continue;
    const float mean_dy = static_cast<float>(sum_dy / count);
    const float mean_dy_normed = static_cast<float>(sum_dy_normed / count);
    for_each_pixel(p.in, p.out, [&](std::int64_t in, std::int64_t out) {
      for (int c = g * per_group; c < (g + 1) * per_group; ++c) {
        const float normed = (p.x[in + c] - mean) * inverse;
        p.dx[in + c] = inverse * (p.weight[c] * p.dy[out + c] - mean_dy - normed * mean_dy_normed);
      }
    });
  }
  for (int c = p.in.channels; c < p.in.stride; ++c) p.dweight[c] = p.dbias[c] = 0.0f;
  if (p.dx != nullptr) clear_padding(p.in, p.dx);
}

}  // namespace cudp::CUDP_SIMD
