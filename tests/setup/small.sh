# shellcheck shell=bash
# For run.sh and ../fresh/kill.sh: a small checkout (small_tree.py) with an index of its own and an empty cache, all in $small.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
small=$(mktemp -d)
indexes=()
trap 'kill "${indexes[@]}" 2>/dev/null; rm -rf "$small"' EXIT
python3 "$here/small_tree.py" "$small"
export XDG_CACHE_HOME="$small/cache" RANKLAB_SKIP_PACKAGES=1 CCACHE_DISABLE=1 PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS='' no_proxy=127.0.0.1
unset RANKLAB_TORCH_ROOT RANKLAB_PACKAGES PIP_EXTRA_INDEX_URL RANKLAB_DRIVER RANKLAB_CUDA_MODULE
# shellcheck disable=SC2034
ranklab="$small/tree/ranklab"

start_index() {  # OPTION...
  rm -f "$small/index/port"
  python3 "$here/index.py" "$small/index" "$@" &
  indexes+=($!)
  disown "${indexes[-1]}"
  while [ ! -s "$small/index/port" ]; do sleep 0.05; done
  PIP_INDEX_URL="http://127.0.0.1:$(cat "$small/index/port")/simple"
  export PIP_INDEX_URL
}
stop_index() { kill "${indexes[@]}" 2>/dev/null || true; indexes=(); }
start_anew() { rm -rf "$small/tree/build" "$small/cache"; : >"$small/index/requests"; }
