# Keeps what ptxas says of every kernel (registers, spills, shared memory), a file an architecture:
# FOLDER/sm_90.txt, ... A test reads them. Run as a script (-P), it makes one of them.
if(CMAKE_SCRIPT_MODE_FILE)
  # NVCC (with launcher), ARCHITECTURE, REPORT, INCLUDE, SOURCES
  set(text "")
  foreach(source ${SOURCES})
    execute_process(
      COMMAND ${NVCC} -std=c++20 -O3 -DNDEBUG -I${INCLUDE} -arch=sm_${ARCHITECTURE} -Xptxas -v -cubin
              ${source} -o ${REPORT}.cubin
      ERROR_VARIABLE said RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "${said}")
    endif()
    string(APPEND text "${said}")
  endforeach()
  file(WRITE ${REPORT} "${text}")
  return()
endif()

# scripts/check.sh has the others made.
set(CUDP_KERNEL_REPORTS 90 CACHE STRING "Architectures that ptxas is asked about the kernels for")

set(kernel_report_script ${CMAKE_CURRENT_LIST_FILE})
function(add_kernel_report target folder)
  set(architectures ${CUDP_KERNEL_REPORTS})
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
    list(REMOVE_ITEM architectures 100)
  endif()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.cuh
       ${PROJECT_SOURCE_DIR}/kernels/*.hpp ${PROJECT_SOURCE_DIR}/runtime/device/cuda/*.hpp)
  set(reports "")
  foreach(architecture ${architectures})
    set(report ${folder}/sm_${architecture}.txt)
    list(APPEND reports ${report})
    add_custom_command(OUTPUT ${report}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
      COMMAND ${CMAKE_COMMAND} "-DNVCC=${CMAKE_CUDA_COMPILER_LAUNCHER};${CMAKE_CUDA_COMPILER}"
              -DARCHITECTURE=${architecture} -DREPORT=${report} -DINCLUDE=${PROJECT_SOURCE_DIR}
              "-DSOURCES=${ARGN}" -P ${kernel_report_script}
      DEPENDS ${ARGN} ${headers} ${kernel_report_script}
      COMMENT "Asking ptxas about the kernels for sm_${architecture}" VERBATIM)
  endforeach()
  add_custom_target(${target} DEPENDS ${reports})
endfunction()
