#!/usr/bin/env bash
# The checks that are too slow for every build: formatting, clang-tidy, sanitizers, a build without
# CUDA. Usage: scripts/check.sh [format] [tidy] [address] [thread] [no-cuda]   (default: all)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sources() { git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh'; }

configure() {  # folder, CMake arguments
  local folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja -DCUDP_BENCH=OFF "$@" >/dev/null
}

format() { sources | xargs clang-format --dry-run --Werror; }

tidy() {
  configure build-tidy -DCUDP_CUDA=OFF -DCUDP_BENCH=ON
  cmake --build build-tidy --target cudp_models cudp_runtime  # generated headers
  git ls-files '*.cpp' | grep -v '^tests/fuzz/' |
    xargs -P "$(nproc)" -n 4 clang-tidy -p build-tidy --quiet --warnings-as-errors='*'
}

sanitized() {  # folder, sanitizers
  # Lines are enough for a report; following variables makes the emulated kernels compile 5 x longer.
  configure "$1" -DCUDP_CUDA=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCUDP_SANITIZE="$2" \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1"
  cmake --build "$1"
  ctest --test-dir "$1" --output-on-failure --parallel "$(nproc)"
}

address() { sanitized build-asan address,undefined; }
thread() { sanitized build-tsan thread; }

no-cuda() {
  configure build-cpu -DCUDP_CUDA=OFF
  cmake --build build-cpu
  ctest --test-dir build-cpu --output-on-failure --parallel "$(nproc)"
}

if (($# == 0)); then set -- format tidy address thread no-cuda; fi
for check in "$@"; do
  echo "== $check" >&2
  case $check in
    format | tidy | address | thread | no-cuda) "$check" ;;
    *)
      echo "check.sh: expected format, tidy, address, thread or no-cuda, found '$check'" >&2
      exit 2
      ;;
  esac
done
