cmake_minimum_required(VERSION 3.24)
# Writes what this build was made from; run at every build, touches the file only on a change.
# Without git or outside of a clone the commit is "unknown".
set(commit unknown)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND described)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "#pragma once
#define CUDP_VERSION \"@VERSION@\"
#define CUDP_COMMIT \"@commit@\"
#define CUDP_COMPILER \"@COMPILER@\"
")
