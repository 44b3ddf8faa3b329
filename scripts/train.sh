#!/usr/bin/env bash
# Installs what is missing, builds, and trains a CNN with differential privacy: by default on the
# built-in data set at epsilon = 3, delta = 1e-5. Arguments go to `cudp train`:
#   scripts/train.sh --dataset mnist --data-dir DIR
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/scripts/setup.sh"
cudp=$(cd "$root" && cd "${BUILD_DIR:-build}" && pwd)/cudp

# What privacy rests on has no silent default in cudp; this script's defaults stand here.
given=" $* "
defaults=()
if [[ $given != *" --preset"* && $given != *" --config"* && $given != *" --resume "* && $given != *" --resume="* ]]; then
  [[ $given == *" --dataset"* ]] || defaults+=(--dataset glyphs)
  [[ $given == *" --epsilon"* || $given == *" --sigma"* ]] || defaults+=(--epsilon 3)
  [[ $given == *" --delta"* ]] || defaults+=(--delta 1e-5)
fi
exec "$cudp" train "${defaults[@]}" "$@"
