#!/usr/bin/env bash
# The minutes of the README's commands on a bare system: debootstraps it (minbase), copies this checkout's committed files into it, runs
# `./ranklab train` and, with --test, `./ranklab test` there with nothing in any cache, and prints how long each part took.
#   tests/fresh/run.sh [bookworm|trixie] [--test | --test-alone] [--kills N] [--no-unity]     as root, with debootstrap; 6 GB in $TMPDIR; the system is removed at the end
# --test-alone: `./ranklab test` with no train before it, which then compiles everything.
# --kills N: the first command is killed N times at random instants, and typed again each time, before it may end.
# --no-unity: every source is compiled by itself, which shows that each includes what it uses; takes about twice as long.
# The bare system takes packages and wheels from where this one does: its apt sources, pip's settings and certificates are copied.
set -euo pipefail
# What is mounted below is seen by this script and its children alone, and is gone with the last of them.
if [ "$(id -u)" = 0 ] && [ -z "${RANKLAB_FRESH_MOUNTS:-}" ]; then
  RANKLAB_FRESH_MOUNTS=own exec unshare --mount --propagation private "${BASH_SOURCE[0]}" "$@"
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
suite=bookworm with_tests= alone= kills=0 unity=ON
while [ $# -gt 0 ]; do
  case $1 in
    bookworm | trixie) suite=$1 ;;
    --test) with_tests=yes ;;
    --test-alone) with_tests=yes alone=yes ;;
    --no-unity) unity=OFF ;;
    --kills) kills=${2:?--kills wants a number}; shift ;;
    *) echo "run.sh: what is \"$1\"? want: bookworm, trixie, --test, --test-alone, --kills N, --no-unity" >&2; exit 2 ;;
  esac
  shift
done
[ "$(id -u)" = 0 ] || { echo "run.sh: debootstrap needs root; do: sudo $0 $*" >&2; exit 3; }
command -v debootstrap >/dev/null || { echo "run.sh: no debootstrap; do: apt-get install debootstrap" >&2; exit 3; }

work=$(mktemp -d)
system="$work/system"
# Ends what still runs in the bare system.
end_all() {
  local process
  for process in /proc/[0-9]*; do
    if [ "$(readlink "$process/root")" = "$system" ]; then kill -KILL "${process#/proc/}" 2>/dev/null || true; fi
  done
}
cleanup() {
  end_all
  umount -l "$system"/run/netns "$system/proc" "$system/dev/pts" "$system/dev/shm" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT

mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)
echo "debootstrap $suite ..." >&2
debootstrap --variant=minbase --include=ca-certificates "$suite" "$system" "$mirror" >"$work/debootstrap.log" 2>&1 ||
  { tail -n 5 "$work/debootstrap.log" >&2; exit 1; }
# Devices of its own, which debootstrap has made: nothing of this machine lies within what is removed at the end.
[ -c "$system/dev/null" ] || { echo "run.sh: debootstrap could not make devices in $work; do: set TMPDIR to a folder that allows them" >&2; exit 1; }
mount -t proc proc "$system/proc"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$system/dev/pts"
mount -t tmpfs tmpfs "$system/dev/shm"

# The way out of this machine: name server, proxies, certificates, apt's and pip's settings.
cp /etc/resolv.conf /etc/hosts "$system/etc/"
cp -r /etc/ssl/certs/. "$system/etc/ssl/certs/" 2>/dev/null || true
for file in /etc/pip.conf /etc/apt/apt.conf; do if [ -f "$file" ]; then cp "$file" "$system$file"; fi; done
grep -rhE '^ *Acquire' /etc/apt/apt.conf.d 2>/dev/null >"$system/etc/apt/apt.conf.d/90host" || true
passed=()
while IFS='=' read -r name value; do
  case $name in
    PIP_* | *_proxy | *_PROXY | SSL_CERT_FILE | SSL_CERT_DIR | REQUESTS_CA_BUNDLE)
      passed+=("$name=$value")
      if [ -f "$value" ]; then mkdir -p "$system$(dirname "$value")" && cp "$value" "$system$value"; fi ;;
  esac
done < <(env)

mkdir -p "$system/ranklab"
git -C "$root" archive HEAD | tar -x -C "$system/ranklab"
sed -i "/^option(RANKLAB_UNITY /s/ON)/$unity)/" "$system/ranklab/CMakeLists.txt"
grep -q "^option(RANKLAB_UNITY .* $unity)" "$system/ranklab/CMakeLists.txt"

inside() { chroot "$system" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "${passed[@]}" bash -c "cd /ranklab && $1"; }
minutes() { awk -v s="$1" 'BEGIN {printf "%d min %02d s", s / 60, s % 60}'; }
row() { printf '%-42s %s\n' "$1" "$(minutes "$2")"; }

for ((kill = 1; kill <= kills; ++kill)); do
  seconds=$((5 + RANDOM % 50))
  # With all that it started: a process whose root is the bare system.
  inside "./ranklab train" >"$work/killed.log" 2>&1 & victim=$!
  sleep "$seconds"
  end_all
  wait "$victim" 2>/dev/null || true
  echo "killed after $seconds s: $(grep -v " Killed " "$work/killed.log" | tail -n 1)" >&2
done
begin=$(date +%s.%N)
first=
train() {
  while IFS= read -r line; do
    echo "$line" >&2
    # The table's row of step 0: the first loss is there.
    if [ -z "$first" ] && [[ $line =~ ^\ +0\ +[0-9]+\.[0-9]+\  ]]; then first=$(date +%s.%N); fi
  done < <(inside "./ranklab train 2>&1; echo \"exit code \$?\"" | tee "$work/train.log")
  tail -n 1 "$work/train.log" | grep -q '^exit code 0$' && return
  tail -n 20 "$system/root/.cache/ranklab/apt.log" >&2 || true
  echo "run.sh: ./ranklab train failed on $suite" >&2
  exit 1
}
[ -n "$alone" ] || train
end=$(date +%s.%N)
tested=
if [ -n "$with_tests" ]; then
  inside "./ranklab test" >&2 || { echo "run.sh: ./ranklab test failed on $suite" >&2; exit 1; }
  tested=$(date +%s.%N)
fi

echo "$suite, $(nproc) cores, $(chroot "$system" g++ --version | head -n 1), $(git -C "$root" log -1 --format=%h)"
if [ -z "$alone" ]; then
  row "./ranklab train: to its first step" "$(awk "BEGIN {print $first - $begin}")"
  row "./ranklab train: to its end" "$(awk "BEGIN {print $end - $begin}")"
fi
if [ -n "$tested" ]; then row "./ranklab test, $([ -n "$alone" ] && echo alone || echo "after it")" "$(awk "BEGIN {print $tested - $end}")"; fi
echo "of these, in seconds:"
sed 's/^/  /' "$system/ranklab/build/release.times"
