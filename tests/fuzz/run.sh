#!/usr/bin/env bash
# tests/fuzz/run.sh [BUILD_FOLDER [SECONDS]]: runs every fuzzer that long over the kept corpus, with bounded memory. New inputs stay in the build
# folder (RANKLAB_FUZZ_SEED chooses other paths); an input that fails is named on the last line: keep it in corpus/ once it is fixed.
set -euo pipefail
build=${1:-build/fuzz}
seconds=${2:-60}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pids=()
names=()
jobs=$(nproc)
wait_for_oldest() {
  if ! wait "${pids[0]}"; then
    tail -n 40 "$build/fuzz_${names[0]}.log"
    echo "fuzz_${names[0]}: failed; its input lies in $build/findings" >&2
    exit 1
  fi
  echo "fuzz_${names[0]}: $(grep -oE 'Done [0-9]+ runs' "$build/fuzz_${names[0]}.log"), no failure," \
    "$(grep -oE 'stat::peak_rss_mb: +[0-9]+' "$build/fuzz_${names[0]}.log" | tr -s ' ' | cut -d' ' -f2) MB at most"
  pids=("${pids[@]:1}")
  names=("${names[@]:1}")
}
mkdir -p "$build/findings"
for folder in "$here"/corpus/*/; do
  reader=$(basename "$folder")
  mkdir -p "$build/corpus_$reader"
  dict=()
  [ -f "$here/$reader.dict" ] && dict=("-dict=$here/$reader.dict")
  while [ "${#pids[@]}" -ge "$jobs" ]; do wait_for_oldest; done
  "$build/tests/fuzz/fuzz_$reader" "$build/corpus_$reader" "$folder" "${dict[@]}" -seed="${RANKLAB_FUZZ_SEED:-1}" -max_total_time="$seconds" -max_len=65536 -timeout=5 \
    -rss_limit_mb=768 -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="$build/findings/${reader}_" >"$build/fuzz_$reader.log" 2>&1 &
  pids+=($!)
  names+=("$reader")
done
while [ "${#pids[@]}" -gt 0 ]; do wait_for_oldest; done
