#!/usr/bin/env bash
# Fuzzes every parser, and how far one row moves the sum of an engine, with libFuzzer under the address and undefined-behaviour sanitizers.
#   scripts/fuzz.sh [SECONDS]    for each target, default 60; as many at a time as there are cores
# Needs clang++ (or CXX). Exits with 1 if anything was found; the input lies in build-fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "fuzz.sh: expected a number of seconds, found '$seconds'" >&2; exit 2; }
cxx=${CXX:-clang++}
command -v "$cxx" >/dev/null || { echo "fuzz.sh: expected clang++ in PATH or CXX, found no $cxx" >&2; exit 2; }

build="build-fuzz"
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" "${launcher[@]}" \
  -DCUDP_FUZZ=ON -DCUDP_CUDA=OFF -DCUDP_TESTS=OFF -DCUDP_BENCH=OFF >/dev/null
cmake --build "$build" --target fuzz -j "$(nproc)"

# A few small valid inputs each, to start from.
seeds=$build/seeds
findings=$build/findings
mkdir -p "$seeds"/{idx,cifar,compressed,schema,table,matrix,text,model,influence} "$findings"
printf '\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\003abcdefghijkl' >"$seeds/idx/images"
printf '\0\0\010\001\0\0\0\003\0\001\002' >"$seeds/idx/labels"
gzip -nc "$seeds/idx/images" >"$seeds/idx/images.gz"
{ printf '\003'; head -c 3072 /dev/zero; } >"$seeds/cifar/one"
cat "$seeds/cifar/one" "$seeds/cifar/one" >"$seeds/cifar/two"
gzip -nc "$seeds/cifar/one" >"$seeds/compressed/one.gz"
cat "$seeds/compressed/one.gz" "$seeds/idx/images.gz" >"$seeds/compressed/members.gz"
xz -zc "$seeds/cifar/one" >"$seeds/compressed/one.xz"
xz -zc --delta=dist=1 --lzma2=preset=0 "$seeds/cifar/one" >"$seeds/compressed/delta.xz"
cp runtime/data/schemas/*.toml "$seeds/schema"
cp models/*.toml "$seeds/model"
printf '0age,job,label\n1,x,0\n2.5,"y ""z""",1\n' >"$seeds/table/header"
printf '2age\tlabel\n1\t0\n-2e3\t1\n' >"$seeds/table/tabs"
printf '1# comment\n0.5, x, 9, no\n?, ?, , yes.\n\n' >"$seeds/table/plain"
printf '3d,c,b,a\nno,,x,1\n' >"$seeds/table/names"
printf '7old,thief,,x\n' >"$seeds/table/between"
printf '1a,b,c,e,d\n1,x,"k\nl",02.03.2004,no\n' >"$seeds/table/break"
header="{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }"
array="\223NUMPY\001\000\073\000$header"
printf "0$array\0\0\200\077\0\0\0\100" >"$seeds/matrix/array"
printf "0\223NUMPY\001\000\073\000${header/<f4/|u1}\001\002" >"$seeds/matrix/bytes"
images="{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 2, 3), }"
printf "2\223NUMPY\001\000\101\000${images}abcdef" >"$seeds/matrix/images"
{ printf 1; printf 'UEsDBC0AAAAIAAAAIQCxRkXq//////////8FABQAeC5ucHkBABAAiAAAAAAAAABOAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TZqKuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GoY6CkaaOgq1CmQDLgaGBnsGBgYHAFBLAQItAy0AAAAIAAAAIQCxRkXqTgAAAIgAAAAFAAAAAAAAAAAAAACAAQAAAAB4Lm5weVBLBQYAAAAAAQABADMAAACFAAAAAAA=' | base64 -d; } >"$seeds/matrix/archive"
printf '0the\t12\nfilm\t3\n' >"$seeds/text/list"
printf '1do 1 2\nn'"'"'t 3 4e-1\n' >"$seeds/text/vectors"
printf '1\074\0\0\0\0\0\0\0{"e":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]}}    \0\074\0\300' >"$seeds/text/tensor"
printf '21\tThe film<br />\n0\t\n' >"$seeds/text/words"
printf '31\tUndo caf\303\251 \344\270\255!\n' >"$seeds/text/pieces"
printf '50.5 x 9 no \n1 y 0 yes.\n' >"$seeds/table/blanks"
# A seed, a kind of case (texts, random models, the edge of float32), and NaN, infinity, 3e38 or 1e-42.
for kind in 0 1 2 3 7; do
  for number in '\0\0\300\177' '\0\0\200\177' '\231\266\141\177' '\312\002\0\0'; do
    printf "$kind\0\0\\$kind$number" >"$seeds/influence/$kind${number//\\/-}"
  done
done

fuzz_one() {
  local name=$1 corpus=$build/corpus/$1 log=$build/$1.log
  mkdir -p "$corpus"
  if "$build/tests/fuzz/${name}_fuzz" -max_total_time="$seconds" -max_len=65536 -timeout=10 \
    -rss_limit_mb=2048 -artifact_prefix="$findings/$name-" -print_final_stats=1 \
    "$corpus" "$seeds/$name" >"$log" 2>&1; then
    echo "$name: nothing found, $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
  else
    echo "$name: FOUND something, last lines of $log:"
    tail -n 40 "$log"
    return 1
  fi
}
export -f fuzz_one
export build seconds seeds findings

printf '%s\n' idx cifar compressed schema table matrix text model influence |
  xargs -P "$(nproc)" -I{} bash -c 'set -euo pipefail; fuzz_one {}' || exit 1
