#!/usr/bin/env bash
# Tests scripts/gpu_validate.sh without a GPU: it exits with 3, and each of its filters names tests.
# Usage: tests/gpu/gpu_validate_test.sh CUDP CUDP_GPU_TESTS
set -euo pipefail
validate=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../scripts/gpu_validate.sh")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$(realpath "$1")" "$folder/cudp"
ln -s "$(realpath "$2")" "$folder/cudp_gpu_tests"

code=0
CUDA_VISIBLE_DEVICES='' "$validate" --bin "$folder" --out "$folder/results" --stages questions >"$folder/log" || code=$?
((code == 3)) || { echo "without a device: expected exit code 3, found $code"; cat "$folder/log"; exit 1; }

"$validate" --bin "$folder" --stages all --dry-run | grep -o 'gtest_filter=[^ ]*' | tr -d '\\' |
  sed 's/gtest_filter=//; s/-.*//' | tr : '\n' | sort -u >"$folder/filters"
grep -q . "$folder/filters" || { echo "the dry run names no filter"; exit 1; }
while read -r filter; do
  named=$("$folder/cudp_gpu_tests" --gtest_list_tests --gtest_filter="${filter:-*}")
  grep -q '^  ' <<<"$named" || { echo "the filter '$filter' names no test"; exit 1; }
done <"$folder/filters"
