#!/usr/bin/env bash
# lint_speed.sh TREE...: lines a second of fortran-lint beside fortitude and gfortran -fsyntax-only on the same trees.
#
# FORTRAN_LINT names the program (a release build); fortitude and gfortran are left out where they are not found. Each
# runs REPS times (3), and the fastest run counts. The second figure is lines a second of processor time on one core,
# which other programs on the machine disturb less.
set -euo pipefail
lint=${FORTRAN_LINT:-target/release/fortran-lint}
reps=${REPS:-3}

# measure COMMAND...: wall seconds, processor seconds and largest memory (MB) of the fastest run.
measure() {
  local out
  out=$(mktemp)
  for ((i = 0; i < reps; i++)); do
    /usr/bin/time -o "$out" -a -f '%e %U %S %M' "$@" >/dev/null 2>&1 || true
  done
  grep -E '^[0-9.]+ [0-9.]+ [0-9.]+ [0-9]+$' "$out" | sort -n | head -1 | awk '{ printf "%s %.2f %.0f", $1, $2 + $3, $4 / 1024 }'
  rm -f "$out"
}
row() {
  local name=$1 lines=$2 wall cpu memory
  read -r wall cpu memory <<<"$3"
  awk -v name="$name" -v lines="$lines" -v wall="$wall" -v cpu="$cpu" -v memory="$memory" -v tree="$4" 'BEGIN {
    if (wall <= 0) wall = 0.01; if (cpu <= 0) cpu = 0.01
    printf "| %s | %s | %d | %.2f | %.0f | %.0f | %d |\n", tree, name, lines, wall, lines / wall, lines / cpu, memory }'
}

echo '| tree | program | lines | seconds | lines/s | lines per processor second | MB |'
echo '|---|---|---:|---:|---:|---:|---:|'
for tree in "$@"; do
  files=$(find "$tree" -type f \( -iname '*.f' -o -iname '*.f90' -o -iname '*.for' \))
  lines=$(echo "$files" | tr '\n' '\0' | xargs -0 cat | wc -l)
  label=$(basename "$tree")
  row fortran-lint "$lines" "$(measure "$lint" check "$tree")" "$label"
  if command -v fortitude >/dev/null; then
    # It reads free form only, so that its lines are fewer.
    free=$(find "$tree" -type f -iname '*.f90' -print0 | xargs -0 cat | wc -l)
    row fortitude "$free" "$(measure fortitude check "$tree")" "$label"
  fi
  if command -v gfortran >/dev/null; then
    # It stops early in files whose modules it cannot find, so that its figure flatters it.
    list=$(mktemp)
    modules=$(mktemp -d) # It writes module files even then.
    echo "$files" >"$list"
    row 'gfortran -fsyntax-only' "$lines" \
      "$(measure xargs -a "$list" -P 2 -n 20 gfortran -cpp -w -fsyntax-only -J "$modules")" "$label"
    rm -rf "$list" "$modules"
  fi
done
