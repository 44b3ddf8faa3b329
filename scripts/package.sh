#!/usr/bin/env bash
# Builds the program without tests and packs it: dist/cudp-VERSION-linux-ARCHITECTURE.tar.gz and a
# .deb. Both hold the program, its licences and those of the libraries in it, the manual page,
# completion for bash, zsh and fish, and the Slurm scripts. Usage: scripts/package.sh [CMake arguments]
# BUILD_DIR names the build folder (default: build-package).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${BUILD_DIR:-build-package}
BUILD_DIR=$build scripts/setup.sh --packaging "$@"
rm -rf "$build/dist"
(cd "$build" && cpack -G "TGZ;DEB" -B dist >&2)
mkdir -p dist
cp "$build"/dist/*.tar.gz "$build"/dist/*.deb dist/
ls -l dist/* >&2
