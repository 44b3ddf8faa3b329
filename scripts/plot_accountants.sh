#!/usr/bin/env bash
# Draws privacy/accountants.png: what each accountant says of the same steps, as a ratio to the
# privacy loss distribution's upper bound. Usage: scripts/plot_accountants.sh [CUDP]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cudp=${1:-build/cudp}
table=$(mktemp)
trap 'rm -f "$table"' EXIT

value() {  # key, arguments of cudp account
  local key=$1
  shift
  "$cudp" account --delta 1e-6 --q 0.01 --json "$@" | sed -n "s/^ *\"$key\": \([^,]*\),*$/\1/p"
}

for sigma in 0.6 1 2; do
  for steps in 10 20 50 100 200 500 1000 2000 5000 10000 20000 50000 100000; do
    at=(--sigma "$sigma" --steps "$steps")
    echo "$steps $(value epsilon "${at[@]}") $(value epsilon_lower "${at[@]}")" \
      "$(value epsilon "${at[@]}" --accountant rdp) $(value epsilon "${at[@]}" --accountant gdp)"
  done
  printf '\n\n'
done >"$table"

gnuplot <<END
width = 1280
height = 480
load 'runtime/base/style.gp'
set output 'privacy/accountants.png'
set multiplot title 'The same steps by each accountant (q = 0.01, delta = 1e-6)'
unset key
set logscale x
set format x '%.0f'
set xlabel 'steps'
set yrange [0:4]
set ytics 1
set xtics 10,100
set size 0.27,0.92
array sigmas = ['0.6', '1', '2']
do for [i=0:2] {
  set origin 0.27*i,0
  set title 'sigma = '.sigmas[i+1]
  if (i == 0) { set ylabel 'epsilon / upper bound of the PLD' } else { unset ylabel }
  plot '$table' index i using 1:(\$4/\$2) with linespoints lt 1, \
       1 with lines lt 8, \
       '$table' index i using 1:(\$3/\$2) with lines lt 3 dt 2, \
       '$table' index i using 1:(\$5/\$2) with linespoints lt 2 dt 3
}
set origin 0.82,0
set size 0.18,0.92
set lmargin 0
set rmargin 0
unset title
unset border
unset tics
unset grid
unset xlabel
unset logscale
set key inside left center
plot NaN with linespoints lt 1 title 'RDP, a bound', \
     NaN with lines lt 8 title 'PLD, upper bound', \
     NaN with lines lt 3 dt 2 title 'PLD, lower bound', \
     NaN with linespoints lt 2 dt 3 title 'GDP, an estimate'
unset multiplot
END
