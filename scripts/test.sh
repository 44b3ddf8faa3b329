#!/usr/bin/env bash
# Checks which folder includes which, who draws noise and whether files that comments name are there, installs what is
# missing, builds both backends (CUDA where nvcc is found), runs every test, those of the Python package too
# (scripts/python.sh), and fuzzes each parser for 10 seconds (FUZZ_SECONDS; 0 leaves it out).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/check.sh includes noise paths
scripts/setup.sh --tests
if [[ -f build-packages/environment ]]; then  # unpacked without root
  source build-packages/environment
  unset CC CXX  # the build folder knows its compilers; fuzz.sh needs clang
fi
ctest --test-dir "${BUILD_DIR:-build}" --output-on-failure --parallel "$(nproc)"
# Python's tests use one core.
fuzz=
if [[ ${FUZZ_SECONDS:-10} != 0 ]]; then
  scripts/fuzz.sh "${FUZZ_SECONDS:-10}" &
  fuzz=$!
  trap '[[ -z $fuzz ]] || kill "$fuzz" 2>/dev/null || true' EXIT
fi
scripts/python.sh
if [[ -n $fuzz ]]; then
  wait "$fuzz"
  fuzz=
fi
