#pragma once
// The build of CUDA sources that a file is compiled in: by nvcc, or in tests for the SIMT emulator.
// What depends on it lives in `inline CUDP_SIMT`, a namespace of each build, so that one program
// can hold both. CUDP_ON_DEVICE is defined for the files of nvcc's build that hold no kernel, which
// the host's compiler takes.
#if defined(__CUDACC__) || defined(CUDP_ON_DEVICE)
#define CUDP_SIMT on_device
#else
#define CUDP_SIMT emulated
#endif
