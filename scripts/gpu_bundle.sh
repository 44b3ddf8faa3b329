#!/usr/bin/env bash
# Makes one compressed file of what a machine with a GPU needs that has none of this one's packages:
# cudp, the tests on a device and the golden file that they read, the benchmarks, the shared libraries
# that these load (but for the C and C++ libraries), gpu_validate.sh and the predictions.
# Usage: scripts/gpu_bundle.sh BUILD_DIR FILE.tar.xz
# BUILD_DIR built with -DCUDP_CUDA=ON -DCUDP_TESTS=ON -DCMAKE_CUDA_ARCHITECTURES=90 (or another: one
# architecture keeps it small). Benchmarks are left out where they are not built. On the other machine:
#   tar xf FILE.tar.xz, then gpu_validate.sh in the folder cudp-gpu
set -euo pipefail
if (($# != 2)) || [[ $2 != *.tar.xz ]]; then
  sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
to=$folder/cudp-gpu
mkdir -p "$to/bin" "$to/lib"
for program in cudp tests/cudp_gpu_tests bench/cuda_bench; do
  name=$(basename "$program")
  if [[ ! -x $1/$program ]]; then
    [[ $name == cuda_bench ]] && { echo "gpu_bundle: left out: $name, which is not built"; continue; }
    echo "gpu_bundle: $1/$program: expected a program" >&2
    exit 2
  fi
  strip -o "$to/bin/$name" "$1/$program"
  ldd "$1/$program" | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so/ {print $3}' |
    xargs -r cp -Lnt "$to/lib"
  # Libraries load others, so that a path in the program alone would not do. The folder is absolute: tests start their own
  # program again in another folder.
  printf '#!/bin/sh\nhere=$(cd "$(dirname "$0")" && pwd)\nLD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\nexport LD_LIBRARY_PATH\nexec "$here/bin/%s" "$@"\n' \
    "$name" >"$to/$name"
  chmod +x "$to/$name"
done
cp "$root/tests/golden/rounded_normal.json" "$to/bin"  # tests look for it beside their program (test_files.hpp)
cp "$root/scripts/gpu_validate.sh" "$root/bench/predictions.tsv" "$to"
git -C "$root" describe --always --dirty >"$to/commit" 2>/dev/null || echo unknown >"$to/commit"
tar -C "$folder" --sort=name --owner=0 --group=0 -c cudp-gpu | xz -T2 -9 >"$2"
echo "$2: $(stat -c %s "$2" | awk '{printf "%.1f MB", $1 / 1e6}')"
