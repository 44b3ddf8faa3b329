#pragma once
#include <cstdint>

#include "kernels/clipping/sums.hpp"
#include "kernels/features/scatter.hpp"
#include "kernels/features/second_moments.hpp"
#include "kernels/layers/activation.hpp"
#include "kernels/layers/conv2d.hpp"
#include "kernels/layers/group_norm.hpp"
#include "kernels/layers/image.hpp"
#include "kernels/layers/pool.hpp"
#include "kernels/linear/linear_model.hpp"
#include "kernels/products/gather_gemm.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/sample.hpp"
#include "kernels/update/update.hpp"

namespace cudp {

struct CpuKernels {
  int lanes;  ///< floats in a vector

  // Networks. Each takes the argument struct of the header of its name.
  void (*gather_gemm)(const GatherGemm&);
  void (*conv_forward)(const Convolution&);
  void (*conv_weight_gradient)(const Convolution&);
  void (*load_image)(const LoadImage&);
  void (*activation_forward)(const ActivationForward&);
  void (*activation_backward)(const ActivationBackward&);
  void (*max_pool_forward)(const PoolForward&);
  void (*max_pool_backward)(const PoolBackward&);
  void (*average_pool_forward)(const PoolForward&);
  void (*average_pool_backward)(const PoolBackward&);
  void (*group_norm_forward)(const GroupNormForward&);
  void (*group_norm_backward)(const GroupNormBackward&);
  void (*column_sum)(const ColumnSum&);
  void (*add_scaled)(const AddScaled&);
  void (*round_to_grid)(const RoundToGrid&);
  void (*reduce_sums)(const ReduceSums&);
  float (*square_sum)(const float* g, std::int64_t n);  ///< |g|^2, n a multiple of 16
  /// |w|^2 of w = (g - mean) inverse, n a multiple of 16.
  float (*transformed_square_sum)(const float* g, const Transform& t, std::int64_t n);
  /// y = x^2, n a multiple of 16.
  void (*square_numbers)(const float* x, float* y, std::int64_t n);
  TransformedDenseSums (*transformed_dense)(const TransformedDense&);  ///< n a multiple of 16

  /// Scattering transform of up to `lanes` planes. See scatter.hpp.
  void (*scatter)(const Scatter&);

  // Principal components (second_moments.hpp).
  void (*second_moments)(const SecondMoments&);
  void (*project_row)(const ProjectRow&);

  // Linear models (linear_model.hpp), by whole tiles.
  void (*linear_scores)(const LinearScores&);
  void (*linear_gradient)(const LinearGradient&);
  void (*linear_losses)(const LinearLosses&);

  // Random streams (random.hpp), `begin` a multiple of 256.
  /// words[i - begin] = word i of the stream, begin <= i < end.
  void (*fill_words)(const RandomStream& stream, std::int64_t begin, std::int64_t end,
                     std::uint32_t* words);
  /// normals[i - begin] = normal number i of the stream, begin <= i < end.
  void (*fill_normals)(const RandomStream& stream, std::int64_t begin, std::int64_t end,
                       float* normals);
  /// Poisson sampling of examples begin..end; returns how many were drawn. See sample.hpp.
  std::int64_t (*sample)(const SampleArgs&);
  /// Noise and one optimizer step for parameters begin..end. See update.hpp.
  void (*update)(const UpdateArgs&);
  /// |g|^2 over parameters begin..end, g the noisy gradient that update would make.
  double (*noisy_square_sum)(const UpdateArgs&);
};

#ifdef CUDP_SIMD
namespace CUDP_SIMD {
void gather_gemm(const GatherGemm&);
void conv_forward(const Convolution&);
void conv_weight_gradient(const Convolution&);
void load_image(const LoadImage&);
void activation_forward(const ActivationForward&);
void activation_backward(const ActivationBackward&);
void max_pool_forward(const PoolForward&);
void max_pool_backward(const PoolBackward&);
void average_pool_forward(const PoolForward&);
void average_pool_backward(const PoolBackward&);
void group_norm_forward(const GroupNormForward&);
void group_norm_backward(const GroupNormBackward&);
void column_sum(const ColumnSum&);
void add_scaled(const AddScaled&);
void round_to_grid(const RoundToGrid&);
void reduce_sums(const ReduceSums&);
float square_sum(const float* g, std::int64_t n);
float transformed_square_sum(const float* g, const Transform& t, std::int64_t n);
void square_numbers(const float* x, float* y, std::int64_t n);
TransformedDenseSums transformed_dense(const TransformedDense& a);
void scatter(const Scatter&);
void second_moments(const SecondMoments&);
void project_row(const ProjectRow&);
void linear_scores(const LinearScores&);
void linear_gradient(const LinearGradient&);
void linear_losses(const LinearLosses&);

void fill_words(const RandomStream& stream, std::int64_t begin, std::int64_t end,
                std::uint32_t* words);
void fill_normals(const RandomStream& stream, std::int64_t begin, std::int64_t end, float* normals);
std::int64_t sample(const SampleArgs&);
void update(const UpdateArgs&);
double noisy_square_sum(const UpdateArgs&);
}  // namespace CUDP_SIMD
#endif

}  // namespace cudp
