#!/usr/bin/env bash
# Checks and measures a build on a machine with an NVIDIA GPU, in stages. Each has a time limit of
# its own, and its result is on disk before the next begins.
# Usage: scripts/gpu_validate.sh [--bin DIR] [--out DIR] [--stages LIST] [--dry-run]
#   --bin DIR      folder with cudp, cudp_gpu_tests and cuda_bench; default: where gpu_bundle.sh has
#                  put this script, else all are built (BUILD_DIR, default build-gpu)
#   --out DIR      for the results, default gpu-results/DATE
#   --stages LIST  short (the default): questions,benchmarks,training,tests,profile, at most 13 minutes;
#                  all: these, then ranks,benchmarks-all,memcheck,racecheck,initcheck,synccheck; or a
#                  list of these, which run in this order
#   --dry-run      prints every command, and runs none
# Exit code: 0 all passed, 1 something failed, 2 usage, 3 there is no GPU (nothing was validated).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
usage() { sed -n '2,13s/^# \{0,1\}//p' "$here/gpu_validate.sh" >&2; exit 2; }

short=questions,benchmarks,training,tests,profile
all=$short,ranks,benchmarks-all,memcheck,racecheck,initcheck,synccheck
bin='' folder='' stages=short dry=
while (($# > 0)); do
  if [[ $1 == --dry-run ]]; then dry=1; shift; continue; fi
  (($# > 1)) || usage
  case $1 in
    --bin) bin=$(realpath -m -- "$2") ;;
    --out) folder=$(realpath -m -- "$2") ;;
    --stages) stages=$2 ;;
    *) usage ;;
  esac
  shift 2
done
case $stages in
  short) stages=$short ;;
  all) stages=$all ;;
esac
IFS=, read -ra wished <<<"$stages"
for stage in "${wished[@]:-}"; do
  [[ -n $stage && ,$all, == *,$stage,* ]] ||
    { echo "gpu_validate: --stages: expected short, all or some of $all, found '$stage'" >&2; exit 2; }
done

predictions=$here/predictions.tsv
[[ -f $predictions ]] || predictions=$root/bench/predictions.tsv
if [[ -z $bin && -x $here/cudp_gpu_tests ]]; then
  bin=$here
elif [[ -z $bin && -n $dry ]]; then
  bin=${BUILD_DIR:-build-gpu}
elif [[ -z $bin ]]; then
  cd "$root" || exit 1
  export BUILD_DIR=${BUILD_DIR:-build-gpu} CUDP_CUDA=ON
  scripts/setup.sh --tests || exit 1
  bin=$(mktemp -d)
  trap 'rm -rf "$bin"' EXIT
  cp "$BUILD_DIR/cudp" "$BUILD_DIR/tests/cudp_gpu_tests" "$BUILD_DIR/bench/cuda_bench" "$bin" || exit 1
fi

# The toolkit's libraries are opened when they are needed (lazy_libraries.hpp). They are looked for where
# the loader finds them, in the toolkit's folders, and in Python's packages.
lacking=()
find_library() {  # NAME
  local found
  found=$(ldconfig -p 2>/dev/null | awk -v name="$1.so" 'index($1, name) == 1 {print $NF; exit}')
  [[ -n $found ]] || found=$(find /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib \
    $(python3 -c 'import sys; print(*(p + "/nvidia" for p in sys.path if p))' 2>/dev/null) \
    -name "$1.so.*" 2>/dev/null | sort | head -1)
  if [[ -n $found ]]; then
    echo "$1: $found"
    export LD_LIBRARY_PATH=$(dirname "$found")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  else
    echo "$1: not found"
    lacking+=("$1")
  fi
}
for library in libcublas libcufft libcudnn libnccl; do find_library "$library"; done
skipped=
for library in "${lacking[@]:-}"; do
  case $library in
    libcublas) echo "skipped without it: *Blas*"; skipped+=":*Blas*" ;;
    libcufft) echo "skipped without it: *Scatter*"; skipped+=":*Scatter*" ;;
  esac
done

if [[ -z $dry ]]; then
  for program in cudp cudp_gpu_tests; do
    [[ -x $bin/$program ]] || { echo "gpu_validate: $bin/$program: expected a program" >&2; exit 2; }
  done
  tests=$("$bin/cudp_gpu_tests" --gtest_filter='-*' 2>&1)  # runs no test, but looks for a device
  code=$?
  if [[ $tests == *"no CUDA device"* ]]; then
    echo "gpu_validate: no CUDA device here: nothing was validated ($tests)"
    exit 3
  elif ((code != 0)); then
    echo "gpu_validate: cudp_gpu_tests does not start: $tests" >&2
    exit 1
  fi
  folder=${folder:-$PWD/gpu-results/$(date -u +%Y-%m-%dT%H%M%SZ)}
  mkdir -p "$folder" || exit 1
else
  folder=${folder:-gpu-results/DATE}
fi

failed=()
# Runs a command under a time limit; what it says goes to NAME.log, how it ended to results.tsv.
stage() {  # NAME, seconds, command...
  local name=$1 limit=$2
  shift 2
  if [[ -n $dry ]]; then
    printf '%s (at most %s s):' "$name" "$limit"
    printf ' %q' "$@"
    echo
    return
  fi
  local began=$SECONDS code
  timeout -k 10 "$limit" "$@" >"$folder/$name.log" 2>&1
  code=$?
  local word=passed
  ((code == 0)) || word=FAILED
  ((code == 124 || code == 137)) && word="FAILED: its time was over"
  printf '%s\t%s\t%s s\n' "$name" "$word" "$((SECONDS - began))" >>"$folder/results.tsv"
  sync "$folder/results.tsv" "$folder/$name.log" 2>/dev/null
  echo "$word: $name ($folder/$name.log)"
  ((code == 0)) || failed+=("$name")
}
wanted() { [[ ,$stages, == *,$1,* ]]; }
gtest() {  # NAME, seconds, filter
  stage "$1" "$2" "$bin/cudp_gpu_tests" --gtest_brief=1 --gtest_filter="$3$skipped"
}

# What neither the emulator nor the interpreter can answer.
if wanted questions; then
  stage device 10 sh -c "nvidia-smi; '$bin/cudp' info"
  # The first to load the tests' own kernels: the driver compiles them unless they are built for this device.
  gtest tensor-cores 30 '*ATensorCore*:*OperandsAre*-'
  gtest double-functions 15 '*RoundedNormalNumbers*-'
  gtest recordings 15 'All/CudaEngine*/logistic*:All/CudaEngine*/mlp*-'
  gtest shared-memory 10 'All/FusedStep*-'
  gtest fused-kernels 20 'TensorStep*:TextStep*-'
  gtest blas-rows 10 'Blas/CudaEngine*-'
  gtest one-kernel-in-two-units 5 'All/Sampling*-'
fi
# Every row of the predictions, with what is predicted, asked for and measured, on one page.
compare() {  # benchmarks' results
  python3 - "$1" "$predictions" <<'PYTHON'
import json, sys
measured = {b["name"].replace("/real_time", ""): b["real_time"] for b in json.load(open(sys.argv[1]))["benchmarks"]
            if b.get("aggregate_name", "median") == "median"}
measured = {name.removesuffix("_median"): ms for name, ms in measured.items()}
print(f"{'benchmark, ms':40} {'asked':>10} {'predicted':>10} {'measured':>10} {'ratio':>8}")
for line in open(sys.argv[2]):
    if not line.startswith("#"):
        name, predicted, asked = line.rstrip("\n").split("\t")
        ms = measured.get(name)
        ratio = f"{ms / float(predicted):8.2f}" if ms and predicted != "-" else ""
        print(f"{name:40} {asked:>10} {predicted:>10} " + (f"{ms:10.2f} " + ratio if ms else "not measured"))
PYTHON
}
has_benchmarks() {
  [[ -n $dry || -x $bin/cuda_bench ]] || { echo "skipped: $1 (no cuda_bench in $bin)"; return 1; }
}
commit=$(cat "$here/commit" 2>/dev/null || git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
benchmark=("$bin/cuda_bench" --benchmark_repetitions=3 --benchmark_report_aggregates_only=true
  --benchmark_out_format=json --benchmark_context=commit="$commit")
if wanted benchmarks && has_benchmarks benchmarks; then
  rows=$(grep -v '^#' "$predictions" | cut -f1 | paste -sd'|')
  stage benchmarks 300 "${benchmark[@]}" --benchmark_min_time=0.2 --benchmark_out="$folder/first.json" \
    --benchmark_filter="^($rows|sampling.*)(/real_time)?\$"
  if [[ -z $dry ]]; then
    compare "$folder/first.json" | tee "$folder/predictions.txt"
  else
    echo "predictions: asked, predicted and measured of $predictions to $folder/predictions.txt"
  fi
fi

# A training by both devices, from one key, and one that is killed and goes on.
alike='import json, sys
runs = [(json.load(open(run + "/release/privacy.json")), json.loads(open(run + "/release/metrics.jsonl").readlines()[-1]))
        for run in sys.argv[1:]]
for key in ("steps", "releases", "epsilon", "expected_batch"):
    print(key, *(certificate[key] for certificate, _ in runs))
    assert runs[0][0][key] == runs[1][0][key], key
accuracies = [row["test_accuracy"] for _, row in runs]
print("test_accuracy", *accuracies)
assert abs(accuracies[0] - accuracies[1]) <= 0.01'
if wanted training; then
  for device in cpu cuda; do
    stage "training-$device" 30 "$bin/cudp" train --dataset glyphs --model cnn --epochs 3 --batch 256 \
      --epsilon 3 --delta 1e-5 --seed 1 --device "$device" --out "$folder/$device"
  done
  stage training-alike 10 python3 -c "$alike" "$folder/cpu" "$folder/cuda"
  stage training-certificates 10 "$bin/cudp" verify "$folder/cuda"
  # It is killed soon after it has charged a step, however long it takes to start.
  stage training-killed 20 sh -c "{ exec '$bin/cudp' train --dataset glyphs --model cnn --epochs 300 --batch 256 \
    --epsilon 3 --delta 1e-5 --device cuda --out '$folder/killed'; } &
    until [ -s '$folder/killed/private/ledger' ]; do sleep 0.05; kill -0 \$! || exit 1; done; sleep 0.3; kill -KILL \$!"
  stage training-resumed 20 "$bin/cudp" train --resume "$folder/killed"
fi

if wanted tests; then
  gtest tests 180 '*-*RanksOnOneDevice*'
fi

# Nsight Compute's details, as text in profile.log, of the kernels of a few steps of cnn once it is warm. The clocks are left
# as the benchmarks find them.
if wanted profile; then
  ncu=$(command -v ncu || echo /usr/local/cuda/bin/ncu)
  if [[ -n $dry || -x $ncu && -x $bin/cuda_bench ]]; then
    stage profile 60 "$ncu" --target-processes all --clock-control none --set full --page details --kernel-name 'regex:fused|finish' \
      --launch-skip 30 --launch-count 4 \
      "$bin/cuda_bench" --benchmark_filter='^cnn/epoch_tf32/batch:2048/' --benchmark_min_time=0.01
  else
    echo "skipped: profile (no ncu, or no cuda_bench in $bin)"
  fi
fi

# By the host, and by NCCL where it lets ranks share a device (2.30 and later): how many were skipped says which.
if wanted ranks; then
  gtest ranks 300 '*RanksOnOneDevice*-'
fi
if wanted benchmarks-all && has_benchmarks benchmarks-all; then
  stage benchmarks-all 1200 "${benchmark[@]}" --benchmark_out="$folder/all.json"
fi

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
for tool in memcheck racecheck initcheck synccheck; do
  wanted "$tool" || continue
  if [[ -n $dry || -x $sanitizer ]]; then
    # Trainings of the larger models take the tools too long.
    stage "$tool" 900 "$sanitizer" --tool "$tool" --error-exitcode 1 "$bin/cudp_gpu_tests" --gtest_brief=1 \
      --gtest_filter="-*SamplingLaw*:*cifar*:*CudaEngine*/cnn*:*CudaEngine*/mlp*:*DeviceTraining*:*RanksOnOneDevice*$skipped"
  else
    echo "skipped: $tool (compute-sanitizer not found)"
    failed+=("$tool (compute-sanitizer not found)")
  fi
done

((${#failed[@]} == 0)) || { echo "gpu_validate: failed: ${failed[*]}"; exit 1; }
[[ -n $dry ]] || echo "gpu_validate: passed; results in $folder"
