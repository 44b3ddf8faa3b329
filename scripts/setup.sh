#!/usr/bin/env bash
# Installs what is missing from the distribution's packages (Debian 12, Ubuntu 24.04) and builds.
# Usage: scripts/setup.sh [--tests | --packaging] [CMake arguments]
# BUILD_DIR names the build folder (default: build); CUDP_CUDA=AUTO|ON|OFF the CUDA backend. CUDP_UNPACK=1: without root;
# packages are unpacked into build-packages/, which later builds use (scripts/unpack.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(g++ cmake ninja-build git zlib1g-dev liblzma-dev libfmt-dev libspdlog-dev libcli11-dev
          libkissfft-dev nlohmann-json3-dev libtomlplusplus-dev libeigen3-dev libsodium-dev libutf8proc-dev
          libboost-dev gnuplot-nox)
tests=OFF
if [[ ${1:-} == --tests ]]; then
  shift
  tests=ON
  packages+=(libgtest-dev libbenchmark-dev clang libclang-rt-dev libzstd-dev xz-utils libopenmpi-dev openmpi-bin
             python3-numpy python3-venv python3-dev)
elif [[ ${1:-} == --packaging ]]; then
  shift
  packages+=(dpkg-dev file)
fi

missing=()
if [[ ${CUDP_UNPACK:-} == 1 || -f build-packages/packages ]]; then
  scripts/unpack.sh "${packages[@]}" >&2
  source build-packages/environment
else
  for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $status == installed ]] || missing+=("$package")
  done
fi
if ((${#missing[@]})); then
  echo "Installing: ${missing[*]}" >&2
  as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "setup.sh: these packages must be installed by root, and there is no sudo here. As root:" >&2
      echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
      echo "Without root: CUDP_UNPACK=1 unpacks them into build-packages/." >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

build=${BUILD_DIR:-build}
# nvcc is often installed beside the path.
if ! command -v nvcc >/dev/null && [[ -x /usr/local/cuda/bin/nvcc ]]; then
  export PATH="$PATH:/usr/local/cuda/bin"
fi
settings=(-DCUDP_CUDA="${CUDP_CUDA:-AUTO}")
[[ -f $build/CMakeCache.txt ]] || settings+=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DCUDP_UNITY=ON -DCUDP_UNITY_BATCH=40)
# A folder that once had the tests keeps them.
if [[ $tests == ON || ! -f $build/CMakeCache.txt ]]; then
  settings+=(-DCUDP_TESTS=$tests -DCUDP_BENCH=$tests)
fi
cmake -S . -B "$build" "${settings[@]}" "$@" >&2
cmake --build "$build" >&2
