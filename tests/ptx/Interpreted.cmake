# Programs whose kernels are nvcc's PTX, run by an interpreter (support/ptx): the tests of
# cudp_gpu_tests, from the same objects, and cudp itself. No kernel is compiled again.
find_path(ZSTD_INCLUDE_DIR zstd.h)  # as nvcc compresses what is in an object; BSD-3-Clause
find_library(ZSTD_LIBRARY zstd)
set(ptx_missing "")
if(NOT ZSTD_INCLUDE_DIR OR NOT ZSTD_LIBRARY)
  set(ptx_missing "libzstd was not found")
elseif(cuda_architectures MATCHES "real" AND NOT cuda_architectures MATCHES "virtual")
  set(ptx_missing "CMAKE_CUDA_ARCHITECTURES has no PTX")
endif()
if(ptx_missing)
  message(STATUS "PTX interpreter for CUDA tests: OFF (${ptx_missing})")
  return()
endif()
message(STATUS "PTX interpreter for CUDA tests: ON")

add_library(cudp_ptx_runtime OBJECT support/ptx/cuda_runtime.cpp support/ptx/cuda_streams.cpp
  support/ptx/fat_binary.cpp support/ptx/library_twins.cpp support/ptx/runtime.cpp)
target_include_directories(cudp_ptx_runtime SYSTEM PUBLIC ${CUDAToolkit_INCLUDE_DIRS})
target_include_directories(cudp_ptx_runtime SYSTEM PRIVATE ${ZSTD_INCLUDE_DIR})
target_compile_options(cudp_ptx_runtime PRIVATE -O2)
target_link_libraries(cudp_ptx_runtime PUBLIC cudp_ptx_interpreter ${ZSTD_LIBRARY})

function(cudp_interpreted name)
  target_link_libraries(${name} PRIVATE cudp_ptx_runtime cudp_runtime CLI11::CLI11)
  set_target_properties(${name} PROPERTIES CUDP_INTERPRETS_PTX ON CUDA_RUNTIME_LIBRARY None LINKER_LANGUAGE CXX)
  # cuBLAS and cuFFT, which are opened by name, are twins; CUB's kernels are our own.
  target_link_options(${name} PRIVATE -Wl,--wrap=dlopen,--wrap=dlsym)
endfunction()

file(GLOB ptx_test_sources CONFIGURE_DEPENDS ptx/*_test.cpp)
add_executable(cudp_ptx_tests $<TARGET_OBJECTS:cudp_gpu_test_objects> ${ptx_test_sources})
target_compile_options(cudp_ptx_tests PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${test_options}>)
target_link_libraries(cudp_ptx_tests PRIVATE GTest::gtest)
cudp_interpreted(cudp_ptx_tests)

add_executable(cudp_ptx ${PROJECT_SOURCE_DIR}/runtime/main.cpp)
cudp_interpreted(cudp_ptx)
target_link_options(cudp_ptx PRIVATE -Wl,--build-id=sha1)

# Single kernels, and the CUDA engine's own tests; scripts/check.sh ptx runs all, also the trainings on scattering features,
# which are interpreted for minutes (CudaScatter has their kernels), and CudaClassWeights.ARowAddsNoMoreThanIsStated, a quarter
# of the time of its file (CudaTargets has a test of this name).
set(ptx_shards 6)
math(EXPR last_shard "${ptx_shards} - 1")
foreach(shard RANGE ${last_shard})
  add_test(NAME cudp_ptx_tests_${shard} COMMAND cudp_ptx_tests --gtest_brief=1
    "--gtest_filter=Cuda*:*CudaPatch*:*CudaProduct*:*CudaSequence*:*CudaTextProduct*:*CudaSteps*:*CudaCancelling*:All/CudaEngine*:All/FusedStep*:TensorStep.ABlock*:FatBinary*:PtxRuntime*:*DeviceTraining*:All/Tf32Presets.*_cnn:Device/TextEngine*:DeviceLinearEngine*Weighted*:DeviceLinearEngine*Numbers:-All/DeviceTraining.*/scatter_cnn:CudaClassWeights.ARow*")
  set_tests_properties(cudp_ptx_tests_${shard} PROPERTIES TIMEOUT ${timeout} COST 100
    ENVIRONMENT "GTEST_TOTAL_SHARDS=${ptx_shards};GTEST_SHARD_INDEX=${shard}")
endforeach()
