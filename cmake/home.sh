# Where this user's downloads lie, for ./ranklab, provision.sh, .ci/run and CMake, which source it: sets and exports HOME, and sets cache.
HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6 || true)}"  # services and cron may have none
if [ -z "$HOME" ] && [ -z "${XDG_CACHE_HOME:-}" ]; then
  echo "ranklab: error: [setup] no home directory; got an empty HOME, and user $(id -u) has no entry in /etc/passwd; want a folder for downloads; do: set HOME or XDG_CACHE_HOME" >&2
  exit 3
fi
export HOME
cache="${XDG_CACHE_HOME:-$HOME/.cache}/ranklab"
