# Sets CUDP_WITH_CUDA and, with it, the CUDA language, after the wish CUDP_CUDA=AUTO|ON|OFF.
# AUTO takes the backend where nvcc 12 or newer, cuBLAS and cuFFT are found.
include(CheckLanguage)
set(CUDP_CUDA_CODE ALL CACHE STRING
  "Machine code for ALL devices, or for the one HERE (Hopper's without one); others compile PTX at their first start")
set_property(CACHE CUDP_CUDA_CODE PROPERTY STRINGS ALL HERE)
set(CUDP_WITH_CUDA OFF)

# Sets `name` to the machine code for this machine's first device, sm_90 if there is none.
function(machine_code_of_this_device name)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE capability ERROR_QUIET RESULT_VARIABLE failed)
  set(code sm_90)
  if(NOT failed AND capability MATCHES "^ *(8|10)[.]")  # 8.x runs sm_80's, 10.x sm_100's
    set(code sm_${CMAKE_MATCH_1}0)
  endif()
  set(${name} ${code} PARENT_SCOPE)
endfunction()
if(CUDP_CUDA STREQUAL "OFF")
  set(cuda_missing "not asked for")
else()
  set(cuda_missing "no CUDA compiler (nvcc) was found")
  # Code for Ampere (8.x runs sm_80's), Hopper and Blackwell, and PTX for what comes later.
  set(cuda_architectures ${CMAKE_CUDA_ARCHITECTURES})
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT cuda_architectures)
      set(CMAKE_CUDA_ARCHITECTURES 80-real)  # for CMake's own checks
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
      set(cuda_missing "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is older than 12.0")
    elseif(NOT TARGET CUDA::cublas)
      set(cuda_missing "cuBLAS was not found")
    elseif(NOT TARGET CUDA::cufft)
      set(cuda_missing "cuFFT was not found")
    else()
      set(CUDP_WITH_CUDA ON)
    endif()
  endif()
  if(CUDP_CUDA STREQUAL "ON" AND NOT CUDP_WITH_CUDA)
    message(FATAL_ERROR "CUDP_CUDA=ON but ${cuda_missing}")
  endif()
endif()

if(CUDP_WITH_CUDA)
  if(NOT cuda_architectures)
    # Code comes from one PTX, Ampere's, which is compiled once. Kernels with parts of their own for
    # Hopper and newer devices (kernels/common/dependent.cuh) have a second PTX.
    set(CMAKE_CUDA_ARCHITECTURES OFF)
    set(machine_code sm_80 sm_90 sm_100)
    if(CUDP_TESTS)  # A build that is tested need not run everywhere at once: others compile its PTX when they start.
      set(machine_code sm_90)
    elseif(CUDP_CUDA_CODE STREQUAL "HERE")
      machine_code_of_this_device(machine_code)
    endif()
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
      list(REMOVE_ITEM machine_code sm_100)
    endif()
    set(ampere_code compute_80)
    set(hopper_code "")
    foreach(code ${machine_code})
      if(code STREQUAL "sm_80")
        string(APPEND ampere_code ,${code})
      else()
        string(APPEND hopper_code ,${code})
      endif()
    endforeach()
    set(cuda_code "--generate-code=arch=compute_80,code=[${ampere_code}${hopper_code}]")
    set(dependent_cuda_code "--generate-code=arch=compute_80,code=[${ampere_code}]"
      "--generate-code=arch=compute_90,code=[compute_90${hopper_code}]")
    message(STATUS "CUDA device code: ${ampere_code}${hopper_code}")
    # Tests and benchmarks are for the machine that builds them: PTX, which every device compiles.
    set(CUDP_CUDA_TEST_ARCHITECTURES 80-virtual)
  else()
    set(CUDP_CUDA_TEST_ARCHITECTURES ${cuda_architectures})
  endif()
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # Debian 12's CMake does not know nvcc's C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  # Kernels work out their layout in constexpr functions that are plain C++ (kernels/fused/plan.hpp).
  string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr")
  message(STATUS "CUDA backend: ON")
else()
  message(STATUS "CUDA backend: OFF (${cuda_missing})")
endif()
