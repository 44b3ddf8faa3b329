#pragma once
// Selects the build of the CUDA sources that a file belongs to: nvcc's, or in tests that of the
// SIMT emulator. Code that depends on the build is in the inline namespace CUDP_SIMT, whose name
// differs between the builds, so that one program can contain both. CUDP_ON_DEVICE is defined for
// files of nvcc's build that contain no kernel and are compiled by the host's compiler.
#if defined(__CUDACC__) || defined(CUDP_ON_DEVICE)
#define CUDP_SIMT on_device
#else
#define CUDP_SIMT emulated
#endif
