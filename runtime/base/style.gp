# Style of every picture, for gnuplot 5. The program contains this file; scripts load it.
# A script may set `width` and `height` [pixels] before.
if (!exists("width")) width = 960
if (!exists("height")) height = 540
set terminal pngcairo size width,height font 'Sans,12' noenhanced background '#ffffff'
set border 3 lc rgb '#808080'
set tics nomirror textcolor rgb '#404040'
set grid xtics ytics lt 1 lw 1 lc rgb '#e6e6e6'
# The legend stands beside the axes, so that it covers no curve.
set key outside right center vertical Left reverse samplen 3 spacing 1.25 textcolor rgb '#202020'
# Colours that colour-blind readers tell apart: Okabe and Ito's, with a dark red in place of the yellow
# and with a darker orange and sky blue. Each has a contrast of at least 3 with white (WCAG 1.4.11), and
# a point of its own.
set linetype 1 lc rgb '#0072b2' lw 2 pt 7 ps 0.9   # blue, disc
set linetype 2 lc rgb '#d55e00' lw 2 pt 5 ps 0.8   # vermilion, square
set linetype 3 lc rgb '#009e73' lw 2 pt 9 ps 1.0   # green, triangle
set linetype 4 lc rgb '#cc79a7' lw 2 pt 13 ps 1.1  # purple, diamond
set linetype 5 lc rgb '#b87f00' lw 2 pt 11 ps 1.0  # orange, triangle that points down
set linetype 6 lc rgb '#3c9ad0' lw 2 pt 4 ps 0.9   # sky blue, open square
set linetype 7 lc rgb '#661100' lw 2 pt 6 ps 0.9   # dark red, ring
set linetype 8 lc rgb '#000000' lw 2 pt 2 ps 0.8   # black, cross: results without privacy
set linetype 9 lc rgb '#808080' lw 2 pt 1 ps 0.8   # grey, plus: what chance or a constant gives
set linetype cycle 9
