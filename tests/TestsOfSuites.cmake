# Writes the tests of ctest for cudp_tests: one for each suite, since the start of a process costs
# more than most tests; and one for each test of suites that take long, which start first, so that
# all cores have work until the end, and of suites that leave out tests where a program, a file or a
# device is missing, so that ctest names these. Run by cmake -P with `program`, `out`, `timeout` (seconds) and
# `no_pictures` (a folder with a gnuplot that draws nothing).
cmake_minimum_required(VERSION 3.24)
set(long Audit CliAudit CliRanks CudaEngineTables CudaStream CudaTexts DpisAudit Imdb Pld
  RandomSettings RealData RowsInCli SelectionBounds SweepCli TableDefaultsCli TargetCli TuneCli
  UnitsCli VerifyCli)
# Suites of many cases, each of which takes little: one process, which starts early.
set(early All/AdaClipCase All/CudaEngine All/FusedStep All/NonInterference All/PlannedAudit All/Refusals
  Blas/CudaEngine CudaRows Engines/RankedCuda Forger Fused/CudaEngine OfEveryMethod/CheckedRuns)
set(may_skip Account CheckCertificate CliCrash CliMpi CliReproduce Completion Curves
  EvaluationReport Export FineTuningCli KernelReport LinearMethods MpiLibrary NcclLibrary
  NeededLibraries Onnx Philox Pictures Predict SecretKey)
list(JOIN long "|" long)
list(JOIN may_skip "|" may_skip)
list(JOIN early "|" early)
# Only where a test looks at pictures they are drawn.
set(of_pictures "^(ReproducedTable|Pictures|Curves|EvaluationReport)|^Account[.]DrawsItsCurves$")

# The cudp processes of a test share bounds that the accountant computed (support/shared_bounds.hpp,
# cudp_main.cpp), but for tests that start the program that users have.
set(of_the_program "^(Answers|CliCrash|CliKilled|CliReproduce|CliSignals|CliTrain|Completion|DpisTable|Help|NeededLibraries|ProgressCli|WrongInputs)[.]?")

execute_process(COMMAND "${program}" --gtest_list_tests OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE " +#[^\n]*" "" lines "${lines}")  # values of parameters
string(REGEX REPLACE "^[^\n]*gtest_main[^\n]*\n" "" lines "${lines}")
string(REPLACE "\n" ";" lines "${lines}")

set(text "")
function(add name filter cost)
  set(path "")
  if(NOT name MATCHES "${of_pictures}")
    set(path "ENVIRONMENT_MODIFICATION PATH=path_list_prepend:${no_pictures}")
  endif()
  set(shares ";CUDP_SHARES_BOUNDS=1")
  if(name MATCHES "${of_the_program}")
    set(shares "")
  endif()
  # Memory that the accountant gives back and takes again needs no new pages. A process that leaves
  # out all its tests ends with CUDP_SKIPPED.
  string(APPEND text "add_test([=[${name}]=] [=[${program}]=] --gtest_brief=1 [=[--gtest_filter=${filter}]=])\n\
set_tests_properties([=[${name}]=] PROPERTIES TIMEOUT ${timeout} COST ${cost} SKIP_RETURN_CODE 77 ${path}\n\
  ENVIRONMENT \"CUDP_SKIPPED=77;GLIBC_TUNABLES=glibc.malloc.trim_threshold=1073741824:glibc.malloc.mmap_threshold=33554432${shares}\")\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()

foreach(line ${lines})
  if(line MATCHES "^([^ ].*)[.]$")
    set(suite "${CMAKE_MATCH_1}")
    set(cost 0)  # of each test of the suite
    if(suite MATCHES "^(${long})$")
      set(cost 10)
    elseif(suite MATCHES "(^|/)(${may_skip})$")
      set(cost 1)
    elseif(suite MATCHES "^(${early})$")
      add("${suite}" "${suite}.*" 20)
    else()
      add("${suite}" "${suite}.*" 1)
    endif()
  elseif(line MATCHES "^  (.+)$" AND cost GREATER 0)
    add("${suite}.${CMAKE_MATCH_1}" "${suite}.${CMAKE_MATCH_1}" ${cost})
  endif()
endforeach()
file(WRITE "${out}" "${text}")
