#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: runs every GPU test, again under compute-sanitizer's four tools,
# and the benchmarks, and writes bench/results/DEVICE/DATE.json.
# Usage: scripts/gpu_validate.sh [--bin DIR]
#   --bin DIR   folder with cudp_gpu_tests and cuda_bench; without it both are built (BUILD_DIR,
#               default build-gpu)
# Exit code: 0 all passed, 1 something failed, 2 usage, 3 there is no GPU (nothing was validated).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=
case ${1:-} in
  --bin) bin=${2:?--bin needs a folder} ;;
  "") ;;
  *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
if [[ -z $bin ]]; then
  export BUILD_DIR=${BUILD_DIR:-build-gpu} CUDP_CUDA=ON
  scripts/setup.sh --tests || exit 1
  bin=$(mktemp -d)
  trap 'rm -rf "$bin"' EXIT
  cp "$BUILD_DIR/tests/cudp_gpu_tests" "$BUILD_DIR/bench/cuda_bench" "$bin" || exit 1
fi
for program in cudp_gpu_tests cuda_bench; do
  [[ -x $bin/$program ]] || { echo "gpu_validate: $bin/$program: expected a program" >&2; exit 2; }
done

tests=$("$bin/cudp_gpu_tests" --gtest_list_tests 2>&1) || true
if [[ $tests == *"no CUDA device"* ]]; then
  echo "gpu_validate: no CUDA device here: nothing was validated"
  exit 3
fi

failed=()
report() {  # NAME, exit code
  if (($2 == 0)); then echo "passed: $1"; else echo "FAILED: $1"; failed+=("$1"); fi
}

"$bin/cudp_gpu_tests" --gtest_brief=1
report tests $?

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [[ -x $sanitizer ]]; then
  # The larger models take the tools too long.
  for tool in memcheck racecheck initcheck synccheck; do
    "$sanitizer" --tool "$tool" --error-exitcode 1 "$bin/cudp_gpu_tests" --gtest_brief=1 \
      --gtest_filter='-*SamplingLaw*:*cifar*:*/cnn*:*mlp*'
    report "$tool" $?
  done
else
  report "compute-sanitizer (not found)" 1
fi

device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1)
folder=bench/results/$(tr -c 'A-Za-z0-9\n' '-' <<<"${device:-unknown}")
mkdir -p "$folder"
result=$folder/$(date -u +%Y-%m-%dT%H%M%SZ).json
commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
"$bin/cuda_bench" --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
  --benchmark_out="$result" --benchmark_out_format=json \
  --benchmark_context=commit="$commit" \
  --benchmark_context=failed="$(IFS=,; echo "${failed[*]:-none}")"
report benchmarks $?

echo "results: $result"
((${#failed[@]} == 0)) || { echo "gpu_validate: failed: ${failed[*]}"; exit 1; }
