#include "kernels/common/vec.hpp"
#include "kernels/cpu_kernels.hpp"

namespace cudp::CUDP_SIMD {

extern const CpuKernels kKernels;
const CpuKernels kKernels = {
    .lanes = kLanes,
    .gather_gemm = gather_gemm,
    .conv_forward = conv_forward,
    .conv_weight_gradient = conv_weight_gradient,
    .load_image = load_image,
    .activation_forward = activation_forward,
    .activation_backward = activation_backward,
    .max_pool_forward = max_pool_forward,
    .max_pool_backward = max_pool_backward,
    .average_pool_forward = average_pool_forward,
    .average_pool_backward = average_pool_backward,
    .group_norm_forward = group_norm_forward,
    .group_norm_backward = group_norm_backward,
    .column_sum = column_sum,
    .add_scaled = add_scaled,
    .round_to_grid = round_to_grid,
    .reduce_sums = reduce_sums,
    .square_sum = square_sum,
    .transformed_square_sum = transformed_square_sum,
    .square_numbers = square_numbers,
    .transformed_dense = transformed_dense,
    .scatter = scatter,
    .second_moments = second_moments,
    .project_row = project_row,
    .linear_scores = linear_scores,
    .linear_gradient = linear_gradient,
    .linear_losses = linear_losses,
    .fill_words = fill_words,
    .fill_normals = fill_normals,
    .sample = sample,
    .update = update,
    .noisy_square_sum = noisy_square_sum,
};

}  // namespace cudp::CUDP_SIMD
