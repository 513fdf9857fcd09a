#!/usr/bin/env bash
# One Markdown table of rma-bench beside MPICH, Open MPI (default and osc/sm) and this machine's limits.
#
#   tests/peers/table.sh                       2 ranks, everything
#   RANKS=8 ONLY="barrier lock" tests/peers/table.sh
#   TRANSPORT=tcp tests/peers/table.sh         2 ranks that share no memory, beside a raw socket
#
# Runs of all of them take turns, group of metrics by group, so that what else the machine does meets all alike; a cell is
# the median of REPS runs. What is not installed is left out, with the reason on standard error. The last column is
# the reach of the metric: a factor on the best peer of the same run, or a bound, and whether this run keeps it.
#
#   REPS=3    runs of each program and group          SCALE=1   factor on the numbers of iterations; 0.05 beyond 2 ranks,
#   RANKS=2   ranks                                             where a barrier of a peer takes tens of milliseconds
#   ONLY=...  groups of metrics                     BIN=...   folder with rma-run and rma-bench; else they are built
#   LIMIT=60  seconds that one run may take
#   RAW=...   file for the single values: config, metric, bytes, value, unit
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
REPS=${REPS:-3}; RANKS=${RANKS:-2}; LIMIT=${LIMIT:-60}; TRANSPORT=${TRANSPORT:-shm}
case $TRANSPORT in shm|tcp) ;; *) echo "TRANSPORT is shm or tcp, not '$TRANSPORT'" >&2; exit 2 ;; esac
if [ "$RANKS" -eq 2 ]; then
  SCALE=${SCALE:-1}; ONLY=${ONLY:-"setup barrier lat bw rate acc atomic cas fence pscw pgo lock progress"}
else
  SCALE=${SCALE:-0.05}; ONLY=${ONLY:-"barrier fence lock"}
fi
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
raw=${RAW:-$work/raw.tsv}; : > "$raw"
skip() { echo "skipped: $*" >&2; }

if [ -z "${BIN:-}" ]; then
  (cd "$root" && cargo build --release --quiet -p rma-runtime --bins) || exit 1
  BIN=${CARGO_TARGET_DIR:-$root/target}/release
fi
configs="ours"
if command -v mpicc.mpich >/dev/null && command -v mpirun.mpich >/dev/null; then
  mpicc.mpich -O2 -o "$work/bench.mpich" "$here/mpi_rma_bench.c" && configs="$configs mpich"
else skip "MPICH is not installed (Debian package mpich)"; fi
if command -v mpicc.openmpi >/dev/null && command -v mpirun.openmpi >/dev/null; then
  mpicc.openmpi -O2 -o "$work/bench.ompi" "$here/mpi_rma_bench.c" && configs="$configs ompi"
  [ "$TRANSPORT" = tcp ] || configs="$configs osc-sm"
else skip "Open MPI is not installed (Debian packages openmpi-bin, libopenmpi-dev)"; fi
if command -v cc >/dev/null && [ "$RANKS" -eq 2 ]; then
  cc -O2 -o "$work/limits" "$here/limits.c" && configs="$configs limits"
elif [ "$RANKS" -eq 2 ]; then skip "there is no C compiler, so no limits of the machine"; fi

export OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_orte_base_help_aggregate=0
export BENCH_SCALE=$SCALE
ompi() {
  timeout "$LIMIT" mpirun.openmpi --allow-run-as-root --oversubscribe -n "$RANKS" \
    -x BENCH_ONLY -x BENCH_KINDS -x BENCH_SCALE "$@" "$work/bench.ompi"
}
launch() { # config group kind
  export BENCH_ONLY=$2 BENCH_KINDS=$3
  case $TRANSPORT-$1 in
    tcp-mpich) export MPIR_CVAR_NOLOCAL=1 UCX_TLS=tcp,self UCX_NET_DEVICES=lo ;;
    tcp-ompi)  ompi --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include lo --mca osc pt2pt; return ;;
  esac
  case $1 in
    ours)   timeout "$LIMIT" "$BIN/rma-run" -n "$RANKS" --transport "$TRANSPORT" \
              "$BIN/rma-bench" --only "$2" --kinds "$3" --scale "$SCALE" ;;
    mpich)  timeout "$LIMIT" mpirun.mpich -n "$RANKS" "$work/bench.mpich" ;;
    ompi)   ompi ;;
    osc-sm) ompi --mca osc sm ;;
  esac
}
failed=""
# Of windows over memory of the caller, which osc/sm refuses, only some rows are of interest.
created=$(for group in $ONLY; do case $group in setup|lat) echo "create:$group" ;; esac; done)
for rep in $(seq "$REPS"); do
  for entry in $ONLY $created; do
    group=${entry#create:}; kind=alloc; [ "$group" = "$entry" ] || kind=create
    for config in $configs; do
      [ "$config" = limits ] && continue
      [ "$config $kind" = "osc-sm create" ] && continue
      out=$(launch "$config" "$group" "$kind" 2>"$work/err"); rc=$?
      printf '%s\n' "$out" | awk -F'\t' -v OFS='\t' -v c="$config" '
        NF == 4 { sub(/^tcp\./, "", $1) }
        NF==4 && ($1 ~ /^alloc\./ || $1 ~ /^create\.win_setup$/ || ($1 ~ /^create\.(put|get)_flush$/ && $2 == 8)) {
          sub(/^alloc\./, "", $1); print c, $0
        }' >> "$raw"
      if [ $rc -ne 0 ]; then
        failed="$failed $config:$group"
        echo "failed: $config, group $group, run $rep, status $rc: $(head -c 300 "$work/err" | tr '\n' ' ')" >&2
      fi
    done
  done
  case $configs in *limits*)
    timeout "$LIMIT" "$work/limits" 2>/dev/null | awk -F'\t' -v OFS='\t' '
      sub(/\.best$/, "", $1) { sub(/^limit\./, "", $1); print "limits", $0 }' >> "$raw" ;;
  esac
done

cores=$(nproc)
echo "$RANKS ranks on $cores cores, median of $REPS runs$([ "$SCALE" = 1 ] || echo ", iterations × $SCALE"). Latencies in µs."
echo
# Which limit stands beside a metric, and what is to be reached: `peer F` at most F times the best peer (for rates: at least
# the best peer over F), `atmost V`, `atleast V`, `mpich F` at least F times MPICH, `limit F` at most F times the limit (for rates: at least
# F times).
[ "$TRANSPORT" = shm ] && cat > "$work/rules" <<'RULES'
put_flush 8 peer 1
get_flush 8 peer 1
put_flush 65536 peer 1.05
put_flush 1048576 peer 1.05
lock_put_unlock 8 peer 1
lock_unlock_empty 0 peer 1
put_rate_4096perflush 8 peer 1
acc_sum_f64_array 1048576 mpich 2
fetch_and_add_i64 8 atmost 0.010
cas_i64 8 atmost 0.010
fence_empty 0 peer 1
fence_put_neighbour 8 peer 1
pscw_put_exchange 8 peer 0.7
xlock_rmw_contended_total 8 peer 1
barrier 0 peer 1.2
lock_put_unlock_target_busy50ms_worst 8 peer 1
win_setup 4194304 peer 1
pgo_put_offer_over_pscw 8 atmost 1.2
pgo_put_offer_over_pscw 65536 atmost 1.2
create.put_flush 8 atmost 0.1
RULES
[ "$TRANSPORT" = tcp ] && cat > "$work/rules" <<'RULES'
put_flush 8 limit 1.3
put_bw_64inflight 1048576 limit 0.8
put_rate_4096perflush 8 atleast 10
fence_put_neighbour 8 peer 0.5
fetch_and_add_i64 8 limit 1.3
xlock_rmw_contended_total 8 peer 0.1
acc_sum_f64_array 1048576 limit 0.8
lock_put_unlock_target_busy50ms_worst 8 atmost 1000
RULES
echo "| metric | bytes | unit | ours | MPICH | Open MPI | osc/sm | limit | ours ÷ best peer | reach |"
echo "|---|---:|---|---:|---:|---:|---:|---:|---:|---|"
LC_ALL=C sort -t"$(printf '\t')" -k1,1 -k2,2 -k3,3n -k4,4g "$raw" | awk -F'\t' -v rulesfile="$work/rules" -v ranks="$RANKS" -v transport="$TRANSPORT" -v failed="$failed" '
  function median(key) { return n[key] ? v[key, int((n[key] + 1) / 2)] : "" }
  function show(x) { return x == "" ? "–" : sprintf("%.3g", x) }
  function limit(metric, bytes,   x) {
    if (transport == "tcp") {
      if (metric ~ /_bw_|_array/) return median("limits\ttcp_stream_bw\t1048576")
      if (metric !~ /^(put_flush|get_flush|fetch_and_add_i64|cas_i64)$/) return ""
      # Of a raw socket that sleeps and one that spins the faster counts.
      x = median("limits\ttcp_put_ack_roundtrip_block\t" bytes)
      bytes = median("limits\ttcp_put_ack_roundtrip_spin\t" bytes)
      return x == "" || (bytes != "" && bytes < x) ? bytes : x
    }
    if (metric ~ /^put_flush|^get_flush/ && bytes == 1048576 && median("limits\tshm_memcpy_bw\t1048576") != "")
      return bytes / median("limits\tshm_memcpy_bw\t1048576") / 1e3
    if (metric ~ /^(put|get)_bw/ && bytes == 1048576) return median("limits\tshm_memcpy_bw\t1048576")
    if (metric ~ /^(put_flush|get_flush)$/ && bytes == 8) return scaled("shm_store_release")
    if (metric ~ /^(fetch_and_add_i64|cas_i64)$/) return scaled("shm_fetch_add_uncontended")
    if (metric == "lock_unlock_empty" && scaled("shm_fetch_add_uncontended") != "") return 2 * scaled("shm_fetch_add_uncontended")
    if (metric ~ /^fence_empty|^fence_put_neighbour|^barrier|^pscw_put_exchange/ && bytes <= 8 && ranks == 2)
      return scaled("cacheline_pingpong_roundtrip_spin")
    return ""
  }
  function scaled(name,   x) { x = median("limits\t" name "\t8"); return x == "" ? "" : x / 1e3 }
  BEGIN { while ((getline line < rulesfile) > 0) { split(line, f, " "); rule[f[1], f[2]] = f[3]; bound[f[1], f[2]] = f[4] } }
  { key = $1 FS $2 FS $3; v[key, ++n[key]] = $4; unit[$2 FS $3] = $5; if ($1 != "limits") rows[$2 FS $3] = 1 }
  END {
    for (row in rows) {
      split(row, f, FS); metric = f[1]; bytes = f[2]
      ours = median("ours\t" row); up = unit[row] ~ /^(GB|Mmsg|kop)\/s$/; best = ""
      split("mpich ompi osc-sm", peers, " ")
      for (p = 1; p <= 3; p++) {
        x = median(peers[p] "\t" row)
        if (x != "" && (best == "" || (up ? x > best : x < best))) best = x
      }
      ratio = (ours != "" && best != "" && best > 0) ? ours / best : ""
      reach = ""; r = rule[metric, bytes]; b = bound[metric, bytes]
      if (r == "peer" && ratio != "") {
        good = up ? ratio * b >= 1 : ratio <= b
        reach = (up ? "≥ " : "≤ ") (b == 1 ? "" : (up ? 1 / b : b) " × ") "best peer: " (good ? "yes" : "**no**")
      } else if (r == "atmost" && ours != "") reach = "≤ " b ": " (ours <= b ? "yes" : "**no**")
      else if (r == "atleast" && ours != "") reach = "≥ " b ": " (ours >= b ? "yes" : "**no**")
      else if (r == "limit" && ours != "" && limit(metric, bytes) != "") {
        good = up ? ours >= b * limit(metric, bytes) : ours <= b * limit(metric, bytes)
        reach = (up ? "≥ " : "≤ ") b " × limit (" sprintf("%.2f", ours / limit(metric, bytes)) "): " (good ? "yes" : "**no**")
      } else if (r == "mpich" && ours != "" && median("mpich\t" row) != "")
        reach = "≥ " b " × MPICH: " (ours >= b * median("mpich\t" row) ? "yes" : "**no**")
      printf "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", metric, bytes, unit[row], show(ours), \
        show(median("mpich\t" row)), show(median("ompi\t" row)), show(median("osc-sm\t" row)), \
        show(limit(metric, bytes)), (ratio == "" ? "–" : sprintf("%.2f", ratio)), reach
    }
  }' | LC_ALL=C sort -t'|' -k2,2 -k3,3n
[ -z "$failed" ] || { echo; echo "Failed runs:$failed"; }
