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
set terminal pngcairo size 960,600 font 'Sans,12' noenhanced
set output 'privacy/accountants.png'
set title 'The same steps by each accountant (q = 0.01, delta = 1e-6)'
set border 11 lc rgb '#808080'
set grid lc rgb '#e0e0e0'
set key box lc rgb '#c0c0c0' opaque top right
set rmargin 6
set tics nomirror textcolor rgb '#404040'
set logscale x
set format x '%.0f'
set xlabel 'steps'
set ylabel 'epsilon / PLD upper bound'
set yrange [0:2.4]
set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb '#202020'
plot for [i=0:2] '$table' index i using 1:(\$4/\$2) with linespoints lw 2 pt 7 ps 0.6 lc rgb word('#7fb3d5 #2e86c1 #1b4f72', i+1) title 'RDP (a bound), sigma '.word('0.6 1 2', i+1), \
     for [i=0:2] '$table' index i using 1:(\$5/\$2) with linespoints lw 2 dt 2 pt 5 ps 0.6 lc rgb word('#f5b041 #dc7633 #a04000', i+1) title 'GDP (an estimate), sigma '.word('0.6 1 2', i+1), \
     '$table' index 1 using 1:(\$3/\$2) with lines lw 2 lc rgb '#27ae60' title 'PLD lower bound, sigma 1'
END
