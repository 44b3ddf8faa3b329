#!/usr/bin/env bash
# All tests of cudp_gpu_tests on nvcc's PTX, run by an interpreter (tests/support/ptx): no GPU, and no
# GPU's result. In a build folder that has cudp_ptx_tests, for each of DEVICE:SEED; then names the
# kernels that no test launches, and fails if there are any.
# Usage: scripts/ptx.sh BUILD_DIR DEVICE:SEED...    e.g. build H100:1 H100:2 A100:3 L4:4
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($# >= 2)) || { sed -n '2,6s/^# \{0,1\}//p' scripts/ptx.sh >&2; exit 2; }
build=$(realpath "$1")
shift
tests=$build/tests/cudp_ptx_tests
processes=$(nproc)
folder=$build/ptx
rm -rf "$folder"
mkdir -p "$folder"

# Kernels that are not run here, a regular expression: CUB's, for which their twins stand in.
cannot_run='cub::|_ZN3cub'

failed=0
for wanted in "$@"; do
  export CUDP_PTX_DEVICE=${wanted%:*} CUDP_PTX_SEED=${wanted#*:} CUDP_PTX_LAUNCHES=$folder/launches
  log=$folder/$CUDP_PTX_DEVICE-$CUDP_PTX_SEED
  pids=()
  for ((i = 0; i < processes; ++i)); do
    # Ranks by cifar-cnn take too long here.
    GTEST_TOTAL_SHARDS=$processes GTEST_SHARD_INDEX=$i "$tests" --gtest_brief=1 --gtest_filter='-*RanksOnOneDevice*cifar*' \
      >"$log.$i.log" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < processes; ++i)); do
    wait "${pids[i]}" || { failed=1; echo "FAILED: $wanted, part $i: $log.$i.log" >&2; }
    grep -hE 'tests ran|PASSED|^\[  FAILED|^ptx: (FAULT|note|nvcc|CUB)' "$log.$i.log" | sed "s/^/$wanted: /" || failed=1
  done
done

# Lines "LAUNCHES MODULE KERNEL" of all processes. A kernel that several objects have counts if one of
# them launched it; the others are named, as their text is the same.
awk -v cannot_run="$cannot_run" '
  { n = $1; module = $2; $1 = $2 = ""; of[$0] += n; copies[$0 "\t" module] += n }
  END {
    for (k in of) {
      ++all
      if (of[k] > 0) continue
      if (k ~ cannot_run) { print "cannot run here:" k; continue }
      print "no test launches:" k > "/dev/stderr"
      ++idle
    }
    for (c in copies) {
      split(c, part, "\t")
      if (copies[c] == 0 && of[part[1]] > 0) print "another module'"'"'s copy is launched, not module " part[2] "'"'"'s:" part[1]
    }
    printf "%d kernels, %d of them launched by no test\n", all, idle
    exit idle > 0
  }' "$folder/launches" || failed=1
exit $failed
