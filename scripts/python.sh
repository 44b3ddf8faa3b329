#!/usr/bin/env bash
# Tests the Python package: makes a virtual environment, builds the extension in the tests' build folder, whose
# libraries it is made of, installs the package and runs its tests. Visibly left out where there is no Python with
# venv, or where PyPI cannot be reached.
# Usage: scripts/python.sh [ARGUMENT OF PYTEST...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$(realpath -m "${BUILD_DIR:-build}")
python=$build/python/bin/python

leave_out() {
  echo "python.sh: the Python package is NOT tested: $1" >&2
  exit 0
}
[[ -x $python ]] || python3 -m venv "$build/python" || leave_out "python3 -m venv fails"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || leave_out "Python is older than 3.10"
"$python" -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h")).close()' 2>/dev/null ||
  leave_out "Python's headers are missing (python3-dev)"
"$python" -m pip install --quiet --disable-pip-version-check numpy pytest 'nanobind>=2.4' ||
  leave_out "pip cannot install numpy, pytest and nanobind"
optional=(scikit-learn dp-accounting pandas polars pyarrow)
if ! "$python" -m pip install --quiet --disable-pip-version-check "${optional[@]}" 2>/dev/null; then
  for package in "${optional[@]}"; do
    "$python" -m pip install --quiet --disable-pip-version-check "$package" ||
      echo "python.sh: tests that need $package are skipped" >&2
  done
fi

cmake -S . -B "$build" -DCUDP_PYTHON=ON -DPython_EXECUTABLE="$python" >/dev/null
cmake --build "$build" --target cudp_python cudp
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
rm -rf "$site/cudp"
cp -r runtime/python/cudp "$site/"
cmake --install "$build" --component python --prefix "$site" >/dev/null
"$python" -m pytest --quiet -rs runtime/python/tests "$@"
