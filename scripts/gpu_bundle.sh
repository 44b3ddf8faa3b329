#!/usr/bin/env bash
# Gathers what gpu_validate.sh --bin needs on a machine without this one's packages: the programs,
# stripped, and the shared libraries they load, but for the C and C++ libraries.
# Usage: scripts/gpu_bundle.sh BUILD_DIR DIR
# BUILD_DIR built with -DCUDP_CUDA=ON; -DCMAKE_CUDA_ARCHITECTURES=90 keeps it small.
set -euo pipefail
if (($# != 2)); then
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
mkdir -p "$2"
for program in "$1/tests/cudp_gpu_tests" "$1/bench/cuda_bench"; do
  [[ -x $program ]] || { echo "gpu_bundle: $program: expected a program" >&2; exit 2; }
  strip -o "$2/$(basename "$program")" "$program"
  ldd "$program" | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so/ {print $3}' |
    xargs -r cp -Lt "$2"
done
du -sh "$2"
