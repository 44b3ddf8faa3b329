#pragma once
// Names of the CPU's kernels and of their argument structs. Each argument struct is defined in the
// header of its kernel.
#include <cstdint>

namespace cudp {

struct ActivationBackward;
struct ActivationForward;
struct AddCodedOuter;
struct AddOuter;
struct AddRounded;
struct AddScaled;
struct Allocate;
struct CodedLinear;
struct CodedProduct;
struct ColumnSum;
struct Convolution;
struct DenseLinear;
struct GatherGemm;
struct GroupNormBackward;
struct GroupNormForward;
struct GruStep;
struct LinearGradient;
struct LinearLosses;
struct LinearScores;
struct LoadImage;
struct LstmStep;
struct PoolBackward;
struct PoolForward;
struct ProjectRow;
struct RandomStream;
struct ReleaseSum;
struct RoundedNormals;
struct SampleArgs;
struct Scatter;
struct SecondMoments;
struct SumUnits;
struct Transform;
struct TransformedDense;
struct TransformedDenseSums;
struct UpdateArgs;

/// All CPU kernels, compiled for one set of SIMD instructions: a pointer to each function in
/// cpu_kernels.def.
struct CpuKernels {
  int lanes;  ///< number of floats in a SIMD register of these kernels

#define CUDP_CPU_KERNEL(result, name, ...) result (*name)(__VA_ARGS__);
#include "kernels/common/cpu_kernels.def"
#undef CUDP_CPU_KERNEL
};

#ifdef CUDP_SIMD
namespace CUDP_SIMD {
#define CUDP_CPU_KERNEL(result, name, ...) result name(__VA_ARGS__);
#include "kernels/common/cpu_kernels.def"
#undef CUDP_CPU_KERNEL
}  // namespace CUDP_SIMD
#endif

}  // namespace cudp
