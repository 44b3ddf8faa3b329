#!/usr/bin/env bash
# Checks which folder includes which, who draws noise and whether files that comments name are
# there, installs what is missing, builds both
# backends (CUDA where nvcc is found), runs every test, those of the Python package too (scripts/python.sh), and
# fuzzes each parser for 20 seconds (FUZZ_SECONDS; 0 leaves it out).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/check.sh includes noise paths
scripts/setup.sh --tests
if [[ -f build-packages/environment ]]; then  # unpacked without root
  source build-packages/environment
  unset CC CXX  # the build folder knows its compilers; fuzz.sh needs clang
fi
ctest --test-dir "${BUILD_DIR:-build}" --output-on-failure --parallel "$(nproc)"
scripts/python.sh
scripts/fuzz.sh "${FUZZ_SECONDS:-20}"
