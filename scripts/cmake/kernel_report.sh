#!/bin/sh
# kernel_report.sh FOLDER COMMAND... -o OBJECT ...: compiles, and keeps in FOLDER/OBJECT.txt what
# ptxas says of every kernel (-Xptxas -v: registers, spills, shared memory), for
# tests/kernels/kernel_report_test.cpp.
folder=$1
shift
object=unnamed
previous=
for argument; do
  [ "$previous" = -o ] && object=$(basename "$argument")
  previous=$argument
done
report=$folder/$object.txt
"$@" 2>"$report"
status=$?
grep -vE '^ptxas info|bytes stack frame|^$' "$report" >&2
exit $status
