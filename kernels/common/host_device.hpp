#pragma once
// Arithmetic that is written once, for the CPU and for CUDA.
#ifdef __CUDACC__
#define CUDP_HD __host__ __device__ __forceinline__
#else
#define CUDP_HD inline __attribute__((always_inline))
#endif
