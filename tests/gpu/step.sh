# step NAME SECONDS COMMAND...: runs a command under its own time-out and notes a row. A command may note figures with
#   figure NAME VALUE [UNIT], and skip itself with exit code 77 after printing the reason.
# Sourced by run.sh.
export RANKLAB_GPU_FIGURES="$out/figures.tsv"
export kit program bin out python
deadline=$(awk -v now="$(date +%s)" -v minutes="$minutes" 'BEGIN { printf "%d", now + 60 * minutes }')

figure() { printf '%s\t%s\t%s\t%s\n' "$STEP" "$1" "$2" "${3:-}" >>"$RANKLAB_GPU_FIGURES"; }
export -f figure test_program
export root

begin_results() {
  : >"$out/log"; : >"$out/rows.tsv"; : >"$RANKLAB_GPU_FIGURES"
  mkdir -p "$out/runs"
  failed=0
}

row() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$out/rows.tsv"; printf '%-4s %-44s %-5s %5s s  %s\n' "$@"; }

step() {
  local name=$1 seconds=$2 begin status reason; shift 2
  [[ "$name" =~ $only ]] || return 0
  export STEP="$name"
  if [ "$has_gpu" = no ] && [ -z "${RANKLAB_NO_GPU_NEEDED:-}" ]; then row "$part" "$name" skip 0 "no GPU"; return; fi
  local left=$((deadline - $(date +%s)))
  if [ "$left" -lt 5 ]; then row "$part" "$name" skip 0 "no time left of $minutes minutes"; return; fi
  [ "$seconds" -lt "$left" ] || seconds=$left
  [ "$seconds" -lt "$step_seconds" ] || seconds=$step_seconds
  begin=$(date +%s.%N)
  printf '\n===== %s %s: %s\n' "$part" "$name" "$*" >>"$out/log"
  # A shell of its own, so that exported functions can be steps, too.
  timeout -k 5 "$seconds" bash -c '"$@"' _ "$@" >"$out/step.log" 2>&1 </dev/null
  status=$?
  local took; took=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
  tail -c 8000 "$out/step.log" >>"$out/log"
  reason=$(grep -aE 'error|FAILED|Error|mismatch|SKIPPED|differ' "$out/step.log" | head -n 1 | tr '\t' ' ' | cut -c1-300)
  case $status in
    0) row "$part" "$name" pass "$took" "" ;;
    77) row "$part" "$name" skip "$took" "$(tail -n 1 "$out/step.log" | tr '\t' ' ' | cut -c1-300)" ;;
    124 | 137) failed=1; row "$part" "$name" fail "$took" "no end after $seconds s; $reason" ;;
    *) failed=1; row "$part" "$name" fail "$took" "exit code $status; ${reason:-$(tail -n 1 "$out/step.log" | cut -c1-300)}" ;;
  esac
}

end_results() {
  rm -f "$out/step.log"
  "${python:-python3}" "$kit/report.py" "$out" --gpu "${gpu_name:-none}" --commit "$commit" && cat "$out/result.md"
  [ "$failed" = 0 ] || exit 4
}
