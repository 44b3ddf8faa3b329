#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: runs every GPU test, again under compute-sanitizer's four tools,
# and the benchmarks, and writes DIR/DATE.json.
# Usage: scripts/gpu_validate.sh [--bin DIR] [--out DIR] [--stages LIST]
#   --bin DIR      folder with cudp_gpu_tests and cuda_bench, and the libraries that the machine
#                  lacks, as gpu_bundle.sh makes it; without it both are built (BUILD_DIR, default
#                  build-gpu)
#   --out DIR      for the results, default bench/results/DEVICE
#   --stages LIST  of tests,memcheck,racecheck,initcheck,synccheck,benchmarks; default: all
# Exit code: 0 all passed, 1 something failed, 2 usage, 3 there is no GPU (nothing was validated).
set -uo pipefail
usage() { sed -n '2,10s/^# \{0,1\}//p' "$root/scripts/gpu_validate.sh" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

all=tests,memcheck,racecheck,initcheck,synccheck,benchmarks
bin='' folder='' stages=$all
while (($# > 0)); do
  (($# > 1)) || usage
  case $1 in
    --bin) bin=$(realpath -m -- "$2") ;;
    --out) folder=$(realpath -m -- "$2") ;;
    --stages) stages=$2 ;;
    *) usage ;;
  esac
  shift 2
done
IFS=, read -ra wished <<<"$stages"
for stage in "${wished[@]:-}"; do
  [[ -n $stage && ,$all, == *,$stage,* ]] ||
    { echo "gpu_validate: --stages: expected some of $all, found '$stage'" >&2; exit 2; }
done
cd "$root"

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
export LD_LIBRARY_PATH=$bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

tests=$("$bin/cudp_gpu_tests" --gtest_list_tests 2>&1)
code=$?
if [[ $tests == *"no CUDA device"* ]]; then
  echo "gpu_validate: no CUDA device here: nothing was validated ($tests)"
  exit 3
elif ((code != 0)); then
  echo "gpu_validate: cudp_gpu_tests does not start: $tests" >&2
  exit 1
fi

failed=()
report() {  # NAME, exit code
  if (($2 == 0)); then echo "passed: $1"; else echo "FAILED: $1"; failed+=("$1"); fi
}
wanted() { [[ ,$stages, == *,$1,* ]]; }

if wanted tests; then
  "$bin/cudp_gpu_tests" --gtest_brief=1
  report tests $?
fi

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
for tool in memcheck racecheck initcheck synccheck; do
  wanted "$tool" || continue
  if [[ -x $sanitizer ]]; then
    # Trainings of the larger models take the tools too long.
    "$sanitizer" --tool "$tool" --error-exitcode 1 "$bin/cudp_gpu_tests" --gtest_brief=1 \
      --gtest_filter='-*SamplingLaw*:*cifar*:*CudaEngine*/cnn*:*CudaEngine*/mlp*:*DeviceTraining*'
    report "$tool" $?
  else
    report "$tool (compute-sanitizer not found)" 1
  fi
done

if wanted benchmarks; then
  device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1)
  folder=${folder:-bench/results/$(tr -c 'A-Za-z0-9\n' '-' <<<"${device:-unknown}")}
  mkdir -p "$folder"
  result=$folder/$(date -u +%Y-%m-%dT%H%M%SZ).json
  commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
  "$bin/cuda_bench" --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
    --benchmark_out="$result" --benchmark_out_format=json \
    --benchmark_context=commit="$commit" --benchmark_context=stages="${stages//,/+}" \
    --benchmark_context=failed="$(IFS=+; echo "${failed[*]:-none}")"
  report benchmarks $?
  echo "results: $result"
fi

((${#failed[@]} == 0)) || { echo "gpu_validate: failed: ${failed[*]}"; exit 1; }
