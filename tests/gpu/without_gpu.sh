#!/usr/bin/env bash
# A machine without a GPU: every step is skipped with that reason, the table is written, and the kit ends well.
set -euo pipefail
out=$1
rm -rf "$out"
PATH_WITHOUT_DRIVER=$(mktemp -d)
trap 'rm -rf "$PATH_WITHOUT_DRIVER"' EXIT
printf '#!/bin/sh\nexit 9\n' >"$PATH_WITHOUT_DRIVER/nvidia-smi" && chmod +x "$PATH_WITHOUT_DRIVER/nvidia-smi"
PATH="$PATH_WITHOUT_DRIVER:$PATH" "$(dirname "$0")/run.sh" "$out" >/dev/null
python3 - "$out/result.json" <<'EOF'
import json, sys
result = json.load(open(sys.argv[1]))
steps = result["steps"]
assert result["gpu"] == "none" and len(steps) > 30, (result["gpu"], len(steps))
assert {s["part"] for s in steps} == {"A", "B", "C"}, {s["part"] for s in steps}
assert all(s["outcome"] == "skip" and s["reason"] == "no GPU" for s in steps), [s for s in steps if s["outcome"] != "skip"]
EOF
