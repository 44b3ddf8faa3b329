#!/usr/bin/env bash
# The checks beside the tests: which folder includes which, whether files that comments name are
# there, formatting, clang-tidy, one definition of
# every type, sanitizers, the Python package under them, a build without CUDA, a machine without MPI, who draws noise, whether anything else leaves, on
# all changes of the data, whether what an engine finds in its memory matters, how far one row moves a
# sum, whether runs of settings made by machine are what they say, which faults that catches, how often audits
# catch what, ranks at every SIMD level and 200 killed, jobs interrupted by every signal, the pages of runs in a browser, the release file on a bare Debian 12 and Ubuntu
# 24.04, a build there without root, the program for aarch64, data larger than memory, and, where nvcc is, all CUDA tests on interpreted PTX and which wrong kernels they find.
# scripts/test.sh runs the first three; the others are too slow for every build.
# Usage: scripts/check.sh [includes] [noise] [paths] [interference] [kernels] [format] [tidy] [odr] [address] [thread] [python] [no-cuda] [no-mpi] [ranks] [scratch] [influence] [transcripts] [forge] [faults] [audit] [page] [queue] [bare] [no-root] [aarch64] [memory] [ptx] [mutants]   (default: all but the last five)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sources() { git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh'; }

configure() {  # folder, CMake arguments
  local folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja -DCUDP_BENCH=OFF "$@" >/dev/null
}

# Prints the path of the program that a check runs: $CUDP if it is set, else one that is built here for the CPU.
program() {
  if [[ -n ${CUDP:-} ]]; then
    realpath "$CUDP"
    return
  fi
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON && cmake --build build-cpu --target cudp >&2 && echo "$PWD/build-cpu/cudp"
}

# Every folder of the product, each before those that may include it.
readonly folders="
  kernels/common kernels/random kernels/contribution kernels/step kernels/layers kernels/products
  kernels/features kernels/linear kernels/fused kernels models
  privacy/math privacy/text privacy/mechanism privacy/rdp privacy/pld privacy privacy/certificate privacy/transcript privacy/verify
  runtime/base runtime/ranks runtime/gate runtime/config runtime/data runtime/device runtime/features runtime/methods
  runtime/settings runtime/results runtime/export runtime/report runtime/training runtime/run runtime/audit runtime/verify runtime/sweep runtime/tune runtime/cli runtime/python runtime
  bench/reproduce bench"

includes() {
  git ls-files 'kernels/*' 'models/*' 'privacy/*' 'runtime/*' 'bench/*' |
    grep -E '[.](cpp|hpp|cu|cuh|def)$' | xargs grep -HE '^ *# *include "[a-z]+/' |
    awk -v folders="$folders" '
      function folder(path) {
        sub("/[^/]*$", "", path)
        if (path ~ "^runtime/device/") path = "runtime/device"  # engine.hpp makes those of cpu/, cuda/
        return path
      }
      BEGIN { n = split(folders, names, " "); for (i = 1; i <= n; ++i) place[names[i]] = i }
      {
        file = $0; sub(":.*", "", file)
        header = $0; sub("^[^\"]*\"", "", header); sub("\".*", "", header)
        from = folder(file); to = folder(header)
        if (!(from in place) || !(to in place) || place[to] > place[from] ||
            (from ~ "^privacy" && to !~ "^privacy") || (from ~ "^kernels" && to !~ "^kernels") ||
            (from ~ "^models" && to ~ "^privacy")) {
          print file ": " from " may not include " to " (" header ")" > "/dev/stderr"
          wrong = 1
        }
      }
      END { exit wrong }'
}

# Gaussian noise is drawn in few places: runtime/gate for what the host releases, kernels/step and
# runtime/device for the gradients of a step. The functions that draw it are those of kernels/random
# and runtime/base/random_numbers. Besides these:
#   runtime/methods/objective_perturbation.cpp  noise in the objective, which is released by no grid:
#                                               proved for real numbers only, as its certificate says
#   runtime/methods/initial_weights.cpp  normal numbers that orthogonal matrices are made of: public
#   privacy/verify/                      draws a seeded run's noise again, to hold it against what left
#   kernels/common/cpu_kernels.def       the table of the kernels, which lists them
# (Other initial weights are uniform and public; choices by an exponential mechanism,
# runtime/methods/noisy_min.cpp and privgene.cpp, draw words and no normals.)
noise() {
  local found
  found=$(git ls-files 'kernels/*' 'models/*' 'privacy/*' 'runtime/*' |
    grep -E '[.](cpp|hpp|cu|cuh|def)$' |
    grep -vE '^(kernels/(random|step)|privacy/verify|runtime/(device|gate))/' |
    grep -vxE 'runtime/base/random_numbers[.](cpp|hpp)|kernels/common/cpu_kernels[.]def' |
    grep -vxF -e runtime/methods/objective_perturbation.cpp -e runtime/methods/initial_weights.cpp |
    xargs awk '/normal_numbers|fill_normals|rounded_normals|box_muller/ {
      print FILENAME ":" FNR ": draws Gaussian noise outside runtime/gate" }')
  [[ -z $found ]] || { echo "$found" >&2; return 1; }
}

# Every file that a comment or a README names is there: a path below the folder of who names it, or
# below one above that; a name alone anywhere. Left out: stand-ins (X.hpp, NAME.cpp), what a run
# writes (release/, private/), and names alone of files that are not C++ or scripts.
# So is every place that scripts/faults.py names.
paths() {
  scripts/faults.py list >/dev/null
  local all
  all=$(git ls-files)
  grep -vE '^bench/results/' <<<"$all" | grep -E '[.](cpp|hpp|cu|cuh|def|py|sh|md|cmake)$|CMakeLists.txt$' |
    ALL_FILES=$all xargs awk '
      function folder(path) { return match(path, "^.*/") ? substr(path, 1, RLENGTH) : "" }
      function plain(path) {  # without a/../
        while (match(path, "[^/]*/[.][.]/"))
          path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
        return path
      }
      function is_there(name, at) {
        if (name !~ "/") return name in names
        for (at = folder(FILENAME);; at = folder(substr(at, 1, length(at) - 1))) {
          if (plain(at name) in paths) return 1
          if (at == "") return 0
        }
      }
      BEGIN {
        n = split(ENVIRON["ALL_FILES"], list, "\n")
        for (i = 1; i <= n; ++i) {
          paths[list[i]] = 1
          sub("^.*/", "", list[i])
          names[list[i]] = 1
        }
      }
      {
        text = $0
        if (FILENAME ~ "[.](cpp|hpp|cu|cuh|def)$") {
          if (!sub("^.*//", "", text)) next
        } else if (FILENAME !~ "[.]md$" && text !~ "^ *#") {
          next
        }
        while (match(text, "[A-Za-z0-9_./-]*[A-Za-z0-9][.](cpp|hpp|cuh|cu|def|py|sh|toml|md|cmake)")) {
          name = substr(text, RSTART, RLENGTH)
          sub("^[.]/", "", name)
          text = substr(text, RSTART + RLENGTH)
          if (text ~ "^[A-Za-z0-9_]") continue
          if (name ~ "(^|/)(_|[xX][._])" || name ~ "NAME|DIR" || name ~ "^(release|private)/") continue
          if (name !~ "/" && name ~ "[.](toml|md|py|cu)$") continue
          if (is_there(name)) continue
          print FILENAME ":" FNR ": " name " is not there" > "/dev/stderr"
          wrong = 1
        }
      }
      END { exit wrong }'
}

# Two types of one name that differ are found when the program is linked as one unit.
odr() {
  configure build-odr -DCUDP_CUDA=OFF -DCMAKE_CXX_FLAGS="-flto=auto -Werror=odr -Werror=lto-type-mismatch"
  cmake --build build-odr --target cudp
}

# tests/audit/non_interference_test.cpp with every case, way to end and change of the data.
interference() {
  configure build-interference -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-interference --target cudp_tests
  CUDP_ALL_NEIGHBOURS=1 build-interference/tests/cudp_tests --gtest_filter='*NonInterference*'
}

# Registers, spills and shared memory of every kernel, for all architectures.
kernels() {
  configure build-kernels -DCUDP_CUDA=ON -DCUDP_UNITY=ON "-DCMAKE_CUDA_ARCHITECTURES=80-real;89-real;90-real;100-real"
  cmake --build build-kernels --target cudp_tests
  build-kernels/tests/cudp_tests --gtest_filter='*KernelReport*'
}

format() { sources | xargs clang-format --dry-run --Werror; }

# Reads the files of a unity build: each header once in forty files. From version 22 on clang-tidy leaves out what the system's
# headers declare, which is two thirds of its work, so that a fixed version is installed into the build folder.
tidy() {
  configure build-tidy -DCUDP_CUDA=OFF -DCUDP_BENCH=ON -DCUDP_UNITY=ON -DCUDP_UNITY_BATCH=40 -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
  cmake --build build-tidy --target cudp_build_info  # a generated header; CMake has made the others
  local tool=build-tidy/venv/bin/clang-tidy
  if [[ ! -x $tool ]]; then
    python3 -m venv build-tidy/venv
    build-tidy/venv/bin/pip install --quiet --disable-pip-version-check clang-tidy==23.1.4
  fi
  sed -n 's/^ *"file": "\(.*\)".*/\1/p' build-tidy/compile_commands.json | grep -v 'tests/fuzz/' | sort -u |
    xargs -P "$(nproc)" -n 1 "$tool" -p build-tidy --quiet --warnings-as-errors='*' --checks=-bugprone-suspicious-include
}

sanitized() {  # folder, sanitizers
  # Lines are enough for a report; following variables makes the emulated kernels compile 5 x longer.
  configure "$1" -DCUDP_CUDA=OFF -DCUDP_UNITY=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCUDP_SANITIZE="$2" \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1"
  cmake --build "$1"
  ctest --test-dir "$1" --output-on-failure --parallel "$(nproc)"
}

address() { sanitized build-asan address,undefined; }
thread() {
  TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan_suppressions.txt" sanitized build-tsan thread
}

# The Python package under sanitizers: 1,000 trainings in one process, two threads at once, callbacks that raise. The
# interpreter is not built for them, so their library is loaded before it. Python itself frees little at its end: of what
# is left, only what the extension allocated counts, except for what it makes once, when it is imported. Kernels for AVX
# are left to `address`, whose tests run those of all levels.
python() {
  watched_python build-python-asan address,undefined libasan.so
  awk 'BEGIN { RS = "" } / leak of / && /_core[.]/ && !/PyInit__core/ { print; found = 1 } END { exit found }' \
    build-python-asan/sanitized.log >&2
  watched_python build-python-tsan thread libtsan.so
}
watched_python() {  # folder, sanitizers, their library
  local venv=$PWD/$1/venv site
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check numpy 'nanobind>=2.4'
  configure "$1" -DCUDP_CUDA=OFF -DCUDP_UNITY=ON -DCUDP_TESTS=OFF -DCUDP_PYTHON=ON -DCUDP_SIMD=OFF \
    -DPython_EXECUTABLE="$venv/bin/python" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCUDP_SANITIZE="$2" \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1"
  cmake --build "$1" --target cudp_python
  site=$1/site
  rm -rf "$site"
  mkdir "$site"
  cp -r runtime/python/cudp "$site/"
  cp "$1"/runtime/python/_core.* "$site/cudp/"
  LD_PRELOAD="$(g++ -print-file-name="$3") $(g++ -print-file-name=libstdc++.so.6)" PYTHONPATH=$site PYTHONMALLOC=malloc \
    OPENBLAS_NUM_THREADS=1 LSAN_OPTIONS=exitcode=0 "$venv/bin/python" runtime/python/tests/sanitized.py "${CUDP_FITS:-1000}" \
    2>"$1/sanitized.log" || { cat "$1/sanitized.log" >&2; return 1; }
}

no-cuda() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu
  ctest --test-dir build-cpu --output-on-failure --parallel "$(nproc)"
}

# A machine without MPI, as a name that no library has.
no-mpi() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu
  CUDP_MPI_LIBRARY=none ctest --test-dir build-cpu --output-on-failure --parallel "$(nproc)" \
    -R 'Rank|Mpi|Train|Info'
}

# Ranks at every SIMD level, and 200 of them killed (10 in the ordinary tests).
ranks() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu --target cudp_tests
  local level
  for level in baseline avx2 avx512; do
    CUDP_SIMD_LEVEL=$level build-cpu/tests/cudp_tests --gtest_brief=1 --gtest_filter='*Rank*-*Killed*'
  done
  CUDP_KILLS=200 build-cpu/tests/cudp_tests --gtest_filter='CliRanks.WhoeverIsKilled*'
}

# Every test that has an engine, whose memory is filled with 1e38 and with zeros before each example
# (in the ordinary tests with NaN, tests/support/fill_scratch.cpp).
readonly engine_tests='*Engine*:*Influence*:*DenseEdge*:*Scratch*:*RandomModels*:*Tensor*:*Fused*:*CudaCancelling*
:*LinearSums*:*LinearMethods*:*Recurrent*:*AdaClip*:*Dpis*:Importance*:*AdpSgd*:*DpSgd*:*Sgd.*:*DpAgd*:*PrivGene*
:*TextMethod*:*ExampleMethod*:*Plan*:*Canary*:*Audit*:*NoiseBits*:*Update*:*Release*:*NonInterference*:Resume.*'
scratch() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu --target cudp_tests
  local fill
  for fill in large zero; do
    CUDP_TEST_SCRATCH=$fill build-cpu/tests/cudp_tests --gtest_brief=1 --gtest_filter="${engine_tests//$'\n'/}"
  done
}

# 5,000 settings made by machine, each run held against its transcript, ledger and certificate.
transcripts() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu --target cudp_tests
  CUDP_SETTINGS=5000 build-cpu/tests/cudp_tests --gtest_filter='RandomSettings*'
}

# Every statement of 30 small released runs changed, one at a time: the numbers of changes, and of those
# that `cudp verify` finds.
forge() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu --target cudp_tests cudp
  CUDP_FORGE=all build-cpu/tests/cudp_tests --gtest_filter='Forger*'
}

# What of that catches faults in places that pass a noise, a rate, a step or a charge.
faults() { scripts/faults.py; }

# How far one hostile row moves a sum, over at least a million of them: the numbers of contributions,
# and the largest beside the stated sensitivity.
influence() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu --target cudp_tests
  CUDP_INFLUENCE=10 build-cpu/tests/cudp_tests --gtest_filter='*Influence*:*DenseEdge*' |
    tee build-cpu/influence.log
  awk '/contributions, the largest is/ {
         for (i = 1; i < NF; ++i) if ($(i + 1) == "contributions,") n += $i
         for (i = 1; i < NF; ++i) if ($i == "is" && $(i + 1) > most) most = $(i + 1)
       }
       /PASSED/ { passed = 1 }
       END {
         printf "influence: %d contributions, the largest is %.9g of the stated sensitivity\n", n, most
         exit !(passed && n >= 1000000 && most <= 1)
       }' build-cpu/influence.log
}

# The power of the audits: of 100 mutated trainings each, how many are caught (tests/audit/README.md).
audit() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu --target cudp_tests
  CUDP_AUDIT_SEEDS=100 build-cpu/tests/cudp_tests --gtest_filter='*Audit*'
}

# nvcc's PTX of all kernels, run by an interpreter: no GPU's result (tests/support/ptx/README.md).
interpreted() {
  configure build-ptx -DCUDP_CUDA=ON -DCUDP_UNITY=ON
  cmake --build build-ptx --target cudp_ptx_tests
}
ptx() {
  interpreted
  scripts/ptx.sh build-ptx H100:1 H100:2 H100:3 A100:4 L4:5
}
mutants() {
  interpreted
  scripts/mutants.py build-ptx
}

# The pages of small runs, in headless Chromium at 400 and 1,200 pixels and printed, and by tidy
# (packages chromium and tidy): no console message, request, overflow or contrast below 4.5.
page() {
  local tool cudp
  for tool in chromium tidy; do
    command -v "$tool" >/dev/null || { echo "check.sh page: $tool is missing: apt-get install $tool" >&2; return 1; }
  done
  cudp=$(program)
  local runs=$PWD/build-cpu/page-runs
  rm -rf "$runs"
  mkdir -p "$runs"
  page_runs "$cudp" "$runs" >"$runs/log" 2>&1 || { cat "$runs/log" >&2; return 1; }
  scripts/page_check.py "$runs"/{image,seeded,filtered,text,table,hostile}/release/report.html \
    "$runs"/{free,table,hostile}/private/report.html "$runs/compared/report.html"
}

# Runs whose pages are checked. bash ignores -e in a function before "||", so commands are joined.
page_runs() {  # program, folder
  local cudp=$1 train=("$1" train --quiet) here=$PWD
  cd "$2" &&
    python3 "$here/bench/generate_table.py" . visits --rows 4000 --positive 0.3 --rows-of-person 2 &&
    "${train[@]}" --preset glyphs-cnn --epochs 3 --out image &&
    "${train[@]}" --preset glyphs-cnn --epochs 3 --seed 1 --out seeded &&
    "${train[@]}" --preset glyphs-cnn --epochs 3 --method dpis --out filtered &&
    "${train[@]}" --preset glyphs-cnn --epochs 3 --method sgd --out free &&
    "${train[@]}" --preset sentences-lstm --epochs 1 --out text &&
    "${train[@]}" --dataset visits.csv --schema visits.toml --epsilon 1 --delta 1e-6 --epochs 3 \
      --holdout 0.2 --holdout-epsilon 1 --holdout-delta 1e-6 --out table &&
    hostile_table && cp hostile.csv hostile.test.csv &&
    "${train[@]}" --dataset hostile.csv --schema hostile.toml --epsilon 1 --delta 1e-6 --epochs 3 \
      --test-data hostile.test.csv --out hostile &&
    "$cudp" report image filtered free --out compared &&
    cd "$here"
}

# A table of units whose name, columns and classes are marks of HTML and Markdown, quotes, a character that turns
# the direction of writing, and words of 120 letters.
hostile_table() {
  python3 - <<'EOF'
import csv, json, random
source = random.Random(1)
names = ["person", "<script>alert(1)</script>", "\"quoted\" & 'single' </td></table>", "w" * 120,
         "\u202eevil [x](javascript:alert(1)) `code` | # <!--", "</style>"]
classes = ["<b>NO</b> & \"no\"", "</script><img src=x onerror=alert(2)>"]
with open("hostile.csv", "w", newline="") as f:
    rows = csv.writer(f, lineterminator="\n")
    rows.writerow(names)
    for i in range(3000):
        numbers = [source.random() for _ in names[1:-1]]
        rows.writerow([f"P{i // 2}", *numbers, classes[sum(numbers) > 2]])
text = lambda s: json.dumps(s, ensure_ascii=True)
with open("hostile.toml", "w") as f:
    f.write("name = " + text("</title><img src=x onerror=alert(1)> \u202e `](http://evil.example) --- @me") + "\n")
    f.write("unit = \"person\"\nmax_rows = 2\ncolumns = [\n  {name = \"person\", kind = \"ignore\"},\n")
    for name in names[1:-1]:
        f.write("  {name = " + text(name) + ", kind = \"numeric\", min = 0, max = 1},\n")
    f.write("  {name = " + text(names[-1]) + ", kind = \"label\", values = " + text(classes) + "},\n]\n")
EOF
}

# The release file and the .deb in roots of bare Debian 12 and Ubuntu 24.04, made by debootstrap (as root): another user
# trains a preset with each, without /proc and gnuplot; setup.sh says what root must install. Debian's debootstrap has no
# keys of Ubuntu. BARE_ROOTS names a folder with roots that exist (DIR/bookworm, DIR/noble).
bare() {
  scripts/package.sh -DCUDP_CUDA=OFF
  local roots=${BARE_ROOTS:-build-package/bare}
  make_roots "$roots"
  bare_root "$roots/bookworm"
  bare_root "$roots/noble"
  packed
}

make_roots() {  # folder
  mkdir -p "$1"
  [[ -d $1/bookworm ]] || debootstrap --variant=minbase bookworm "$1/bookworm" \
    "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$1/log"
  [[ -d $1/noble ]] || debootstrap --no-check-gpg --variant=minbase noble "$1/noble" \
    "${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}" gutsy >>"$1/log"
  local root
  for root in "$1/bookworm" "$1/noble"; do
    chroot "$root" id someone >/dev/null 2>&1 || chroot "$root" useradd -m someone
  done
}

# The README's first command from the source, in the same roots, as a user without root and sudo: compilers and libraries
# are unpacked, the program is built and trains. BARE_SYSTEMS: bookworm, noble or both, which is the default.
no-root() {
  local roots=${BARE_ROOTS:-build-package/bare} root
  make_roots "$roots"
  for root in ${BARE_SYSTEMS:-bookworm noble}; do
    root=$roots/$root
    echo "-- $root" >&2
    rm -rf "$root/home/someone/cudp"
    mkdir "$root/home/someone/cudp"
    git archive HEAD | tar x -C "$root/home/someone/cudp"
    chroot "$root" chown -R someone: /home/someone/cudp
    chroot "$root" su someone -c 'cd ~/cudp && CUDP_UNPACK=1 scripts/train.sh --epochs 1 --out run && build/cudp verify run'
    rm -rf "$root/home/someone/cudp"
  done
}

# Sizes of the release file (at most 25 MB) and the .deb, and what they need: the C library alone.
packed() {
  local file needed
  file=$(ls dist/cudp-*-linux-x86_64.tar.gz)
  (($(stat -c %s "$file") <= 25000000)) || { echo "$file: more than 25 MB" >&2; return 1; }
  needed=$(ldd "${BUILD_DIR:-build-package}/cudp" | awk '{ print $1 }' |
    grep -vE '^(linux-vdso|libc|libm|/lib64/ld-linux-x86-64)[.]so' || true)
  [[ -z $needed ]] || { echo "the program needs $needed" >&2; return 1; }
  tar tzf "$file" | grep -c /licences/ | awk '{ print "licence texts: " $1 }'
  needed=$(dpkg-deb -f dist/cudp_*.deb Depends)
  [[ $needed =~ ^libc6\ \(\>=\ [0-9.]+\)$ ]] || { echo "the .deb depends on $needed" >&2; return 1; }
  echo "dependencies of the .deb: $needed"
  stat -c '%n: %s bytes' "$file" dist/cudp_*.deb
}

bare_root() {
  local root=$1
  echo "-- $root" >&2
  rm -rf "$root"/home/someone/* "$root"/tmp/* "$root/src"
  cp dist/cudp-*-linux-*.tar.gz dist/cudp_*.deb "$root/tmp/"
  mkdir "$root/src"
  cp -r scripts "$root/src/"
  chroot "$root" su someone -c 'set -eu
    cd
    tar xzf /tmp/cudp-*.tar.gz
    ldd cudp-*/bin/cudp
    cudp-*/bin/cudp train --preset glyphs-cnn --epochs 1 --quiet --out run
    cudp-*/bin/cudp verify run >verified
    if /src/scripts/setup.sh 2>said; then exit 1; fi
    grep -q "there is no sudo here" said'
  chroot "$root" dpkg -r cudp >/dev/null 2>&1 || true
  chroot "$root" sh -c 'dpkg -i /tmp/cudp_*.deb'
  chroot "$root" su someone -c 'set -eu
    cd
    rm -r cudp-*
    cudp train --preset glyphs-cnn --epochs 1 --seed 1 --quiet --out installed
    cudp verify installed >/dev/null
    cudp verify run >/dev/null
    cudp info'
  chroot "$root" dpkg -r cudp >/dev/null
  ! chroot "$root" sh -c 'command -v cudp' || { echo "$root: dpkg -r leaves the program" >&2; return 1; }
}

# Interruptions by each signal at 20 random moments, under a loop of the same command (4 in the ordinary tests).
queue() {
  configure build-cpu -DCUDP_CUDA=OFF -DCUDP_UNITY=ON
  cmake --build build-cpu --target cudp_tests
  CUDP_KILLS=20 build-cpu/tests/cudp_tests --gtest_filter='QueueCli.InterruptedByAny*'
}

# The program for aarch64 (Grace), by Debian's cross compiler; qemu-user runs it (packages g++-aarch64-linux-gnu and
# qemu-user). Its libraries come from packages of that architecture, which are unpacked into build-aarch64/root: nothing of
# this machine is changed. Each program verifies the seeded run of the other; the weights differ by roundings of float32,
# because NEON has fused multiply-adds and the baseline of x86-64 has none.
aarch64() {
  local root=$PWD/build-aarch64/root tool
  for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
    command -v "$tool" >/dev/null || { echo "check.sh aarch64: $tool is missing: apt-get install g++-aarch64-linux-gnu qemu-user" >&2; return 1; }
  done
  mkdir -p "$root" build-aarch64/debs build-aarch64/apt/lists/partial build-aarch64/cache/archives/partial
  local apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$PWD/build-aarch64/apt"
    -o Dir::State::status=/dev/null -o Dir::Cache="$PWD/build-aarch64/cache" -o APT::Sandbox::User="$(id -un)")
  "${apt[@]}" update
  (cd build-aarch64/debs && "${apt[@]}" download libsodium-dev libutf8proc-dev zlib1g-dev liblzma-dev)
  local deb
  for deb in build-aarch64/debs/*.deb; do dpkg -x "$deb" "$root"; done
  local library=$root/usr/lib/aarch64-linux-gnu emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
  cmake -S . -B build-aarch64/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCUDP_UNITY=ON -DCUDP_CUDA=OFF -DCUDP_TESTS=OFF \
    -DCUDP_BENCH=OFF -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=$(IFS=';' && echo "${emulator[*]}")" \
    -DSODIUM_ARCHIVE="$library/libsodium.a" -DUTF8PROC_ARCHIVE="$library/libutf8proc.a" \
    -DZLIB_ARCHIVE="$library/libz.a" -DLZMA_ARCHIVE="$library/liblzma.a" >/dev/null
  cmake --build build-aarch64/build --target cudp
  local runs=build-aarch64/runs emulated=("${emulator[@]}" build-aarch64/build/cudp) native
  native=$(program)
  local train=(train --preset glyphs-cnn --steps 20 --seed 1 --quiet)
  rm -rf "$runs"
  mkdir "$runs"
  "${emulated[@]}" info
  "${emulated[@]}" "${train[@]}" --out "$runs/aarch64"
  CUDP_SIMD_LEVEL=baseline "$native" "${train[@]}" --out "$runs/x86_64"
  local run
  for run in aarch64 x86_64; do
    "${emulated[@]}" verify "$runs/$run" >"$runs/$run.by-aarch64"
    "$native" verify "$runs/$run" >"$runs/$run.by-x86_64"
    diff "$runs/$run.by-aarch64" "$runs/$run.by-x86_64" || true
  done
  python3 - "$runs" <<'EOF'
import array, json, sys
def weights(run):
    with open(f"{sys.argv[1]}/{run}/release/model.safetensors", "rb") as f:
        f.seek(int.from_bytes(f.read(8), "little"), 1)
        return array.array("f", f.read())
def promise(run):
    with open(f"{sys.argv[1]}/{run}/release/privacy.json") as f:
        stated = json.load(f)
    return [stated[name] for name in ("epsilon", "delta")]
a, b = weights("aarch64"), weights("x86_64")
largest = max(map(abs, b))
difference = max(abs(x - y) for x, y in zip(a, b))
print(f"{len(a)} weights: the largest is {largest:g}, the largest difference {difference:g}")
print("epsilon and delta:", *promise("aarch64"), "and", *promise("x86_64"))
close = all(abs(x - y) <= 1e-9 * y for x, y in zip(promise("aarch64"), promise("x86_64")))
sys.exit(not (close and len(a) == len(b) and difference <= 1e-3 * largest))
EOF
}

# A table and a folder of images of 12 GB each (or CUDP_GIGABYTES) train with 1 GB of anonymous memory (CUDP_LIMIT_MEGABYTES:
# 1000), and in a control group of that size if one can be made: drawn rows are then random reads, or copied in passes. The
# speed is compared with that of as many rows as fit in memory (a sixth of the available, or CUDP_MEMORY_GIGABYTES), drawn at
# the same rate, whose released models are the same bytes from files and from memory. Half of that speed is required.
# bench/disk_reads.cpp then measures how many rows the disk delivers, for comparison.
memory() (
  cudp=$(program)
  mkdir -p build-cpu
  c++ -std=c++20 -O2 -o build-cpu/disk_reads bench/disk_reads.cpp
  data=build-cpu/large
  group=/sys/fs/cgroup/memory/cudp-check-$BASHPID
  [[ -e /sys/fs/cgroup/cgroup.controllers ]] && group=/sys/fs/cgroup/cudp-check-$BASHPID
  training=
  trap 'memory_ends' EXIT
  trap 'exit 130' INT TERM HUP
  limit=${CUDP_LIMIT_MEGABYTES:-1000}
  if mkdir "$group" 2>/dev/null; then
    echo "${limit}M" 2>/dev/null >"$group/memory.max" || echo "${limit}M" >"$group/memory.limit_in_bytes"
  else
    group=
    echo "no control group can be made: the limit is that of the process alone" >&2
  fi
  size=${CUDP_GIGABYTES:-12}
  fits=${CUDP_MEMORY_GIGABYTES:-$(awk -v size="$size" '/^MemAvailable/ { fits = $2 / 6e6; print fits < size ? fits : size }' \
    /proc/meminfo)}
  rm -rf "$data"
  mkdir -p "$data"
  python3 bench/generate_table.py "$data" visits --rows 20000 --positive 0.3
  larger_than_memory images 20 784 --model cnn
  larger_than_memory images 100 784 --model logistic  # their rows are copied while the file is read for its code
  larger_than_memory images 1000 784 --model logistic  # later steps share passes over the file
  rm -rf "${data:?}"/*/
  larger_than_memory large.csv 100 52 --schema "$data/visits.toml"
)

# What memory() leaves nothing of, however it ends.
memory_ends() {
  if [[ -n $training ]]; then
    kill -KILL "$training" 2>/dev/null || true
    wait "$training" 2>/dev/null || true
  fi
  rm -rf "$data"
  [[ -z $group ]] || rmdir "$group"
}

# One training of memory() with all rows, and two with those that fit. Uses its data, group, limit, size and fits.
larger_than_memory() {  # images or large.csv, steps, bytes of a row, settings
  local -a speed=() model=() settings=("${@:4}")
  local where bytes batch rows disk
  echo "-- $1 ${settings[*]}" >&2
  for where in limited file memory; do
    bytes=$fits
    [[ $where == limited ]] && bytes=$size
    batch=$(awk -v part="$bytes" -v size="$size" 'BEGIN { printf "%d", 8192 * part / size }')
    (
      trap - EXIT INT TERM HUP
      # What writes a file pays for its pages: those of the large one do not stay in memory.
      [[ $where != limited || -z $group ]] || echo $BASHPID >"$group/cgroup.procs"
      [[ -e $data/$bytes/$1 ]] || large_rows "$data" "$1" "$bytes"
      [[ $where != limited ]] || ulimit -d $((limit * 1000000 / 1024))
      settings+=(--rows-in "${where/limited/file}")
      exec "$cudp" train "${settings[@]}" --dataset "$data/$bytes/$1" --device cpu --epsilon 1 --delta 1e-9 --seed 1 \
        --batch "$batch" --steps "$2" --eval-every 0 --size-is-public --timings --quiet --json --out "$data/$where"
    ) >"$data/$where.json" &
    training=$!
    peak_memory "$training" "$data/$where.peak"
    wait "$training"
    training=
    speed+=("$(awk -F'[:,]' '/"examples_per_second"/ { printf "%.0f", $2 }' "$data/$where.json")")
    model+=("$(sha256sum <"$data/$where/release/model.safetensors")")
    echo "$where: $bytes GB, ${speed[-1]} examples/s, $(cat "$data/$where.peak")" >&2
    # The memory that was stated, seconds of wall and CPU.
    grep -oE 'at most about .* memory;|(data and device|codes of the data|training) +[0-9].*' "$data/$where/private/log.txt" >&2
    rm -rf "${data:?}/$where"
    if [[ $where == limited ]]; then
      rows=$data/$bytes/$1
      [[ ! -d $rows ]] || rows+=/train-images-idx3-ubyte
      disk=$(build-cpu/disk_reads "$rows" "$3")
      echo "disk: $disk rows/s of $3 bytes, anywhere in a file" >&2
    fi
  done
  [[ ${model[1]} == "${model[2]}" ]] || { echo "memory: other released bytes from a file" >&2; return 1; }
  awk -v limited="${speed[0]}" -v memory="${speed[2]}" -v disk="$disk" 'BEGIN {
    printf "from a file larger than memory: %.2f of the speed in memory, %.2f of the rows that the disk delivers\n",
      limited / memory, limited / disk
    exit limited < 0.5 * memory }' >&2
}

# Largest anonymous memory of a process while it runs, in MB.
peak_memory() {  # process, file
  local peak=0 now
  while now=$(awk '/^RssAnon/ { print $2 }' "/proc/$1/status" 2>/dev/null) && [[ -n $now ]]; do
    ((now > peak)) && peak=$now
    sleep 0.1
  done
  echo "at most $((peak / 1000)) MB of anonymous memory" >"$2"
}

large_rows() {  # folder, images or large.csv, gigabytes
  python3 - "$@" <<'EOF'
import os, random, sys
source, kind, size = sys.argv[1], sys.argv[2], int(float(sys.argv[3]) * 1e9)
folder = f"{source}/{sys.argv[3]}"
word = lambda n: n.to_bytes(4, "big")
if kind == "images":
    os.makedirs(f"{folder}/images")
    for part, count in ("train", size // 784), ("t10k", 1000):
        block = random.Random(part).randbytes(784 * 1000)
        with open(f"{folder}/images/{part}-images-idx3-ubyte", "wb") as f:
            f.write(word(2051) + word(count) + word(28) + word(28))
            for at in range(0, count, 1000):
                f.write(block[:784 * (count - at)])
        labels = bytes(b % 10 for b in block[:784 * 1000:784])
        with open(f"{folder}/images/{part}-labels-idx1-ubyte", "wb") as f:
            f.write(word(2049) + word(count) + (labels * (count // 1000 + 1))[:count])
else:
    os.makedirs(folder)
    with open(f"{source}/visits.csv") as f:
        head, rows = next(f), f.read()
    with open(f"{folder}/large.csv", "w") as f:
        f.write(head)
        for _ in range(size // len(rows) + 1):
            f.write(rows)
EOF
}

if (($# == 0)); then set -- includes noise paths interference kernels format tidy odr address thread python no-cuda no-mpi ranks scratch influence transcripts forge faults audit page queue bare; fi
for check in "$@"; do
  echo "== $check" >&2
  case $check in
    includes | noise | paths | interference | kernels | format | tidy | odr | address | thread | python | no-cuda | no-mpi | ranks | scratch | influence | transcripts | forge | faults | audit | page | queue | bare | no-root | aarch64 | memory | ptx | mutants) "$check" ;;
    *)
      echo "check.sh: expected includes, noise, paths, interference, kernels, format, tidy, odr, address, thread, python, no-cuda, no-mpi, ranks, scratch, influence, transcripts, forge, faults, audit, page, queue, bare, no-root, aarch64, memory, ptx or mutants, found '$check'" >&2
      exit 2
      ;;
  esac
done
