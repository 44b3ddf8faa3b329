#pragma once
// Marks functions that are written once and compiled for both the CPU and CUDA.
#ifdef __CUDACC__
#define CUDP_HD __host__ __device__ __forceinline__
#else
#define CUDP_HD inline __attribute__((always_inline))
#endif
