#!/usr/bin/env bash
# The first command killed at random instants, with all that it started, and typed again: it always ends well. On a checkout whose
# program is a few lines (../setup/small.sh), with downloads slow enough to be hit; run.sh --kills does the same to the real one.
#   tests/fresh/kill.sh [ROUNDS [SEED]]     default: 10 rounds; the seed is printed
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../setup/small.sh"
rounds=${1:-10} seed=${2:-$RANDOM}
echo "seed $seed"
RANDOM=$seed
start_index --rate 1500000
started() { date +%s%N; }
ms_since() { echo $((($(date +%s%N) - $1) / 1000000)); }

start_anew
begin=$(started)
"$ranklab" train >/dev/null 2>&1 </dev/null || { echo "error: the command fails when nobody kills it"; exit 1; }
whole=$(ms_since "$begin")
echo "undisturbed: $whole ms"
for ((round = 1; round <= rounds; ++round)); do
  start_anew
  instant=$((RANDOM * 32768 + RANDOM)) instant=$((instant % whole))
  setsid "$ranklab" train >"$small/killed" 2>&1 </dev/null &
  victim=$!
  disown "$victim"  # or bash tells of its end
  sleep "$(awk -v ms="$instant" 'BEGIN {print ms / 1000}')"
  doing=$(tail -n 1 "$small/killed" | tr '\r' '\n' | tail -n 1)
  # The group and what runs in sessions of its own beside it, as a power cut would.
  pkill -KILL -s "$victim" 2>/dev/null
  pkill -KILL -f "$small/" 2>/dev/null && start_index --rate 1500000
  while kill -0 "$victim" 2>/dev/null; do sleep 0.05; done
  begin=$(started)
  if ! timeout 120 "$ranklab" train >"$small/again" 2>&1 </dev/null || ! grep -q '^trained 7' "$small/again"; then
    echo "error: killed after $instant ms ($doing), typed again:"
    sed 's/^/    /' "$small/again"
    exit 1
  fi
  echo "killed after $instant ms (${doing:-silent}): ended well in $(ms_since "$begin") ms"
done
