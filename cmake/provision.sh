#!/usr/bin/env bash
# Installs what the build needs. Says what it does in one line each, asks for sudo only when a package is missing, downloads only
# what is not in the cache, resumes an interrupted download, checks every download against its hash, and is silent
# and offline when all is there. Cache: $XDG_CACHE_HOME/ranklab (or ~/.cache/ranklab), shared by all clones.
#   provision.sh [--verbose] [PART ...]   PART: packages, torch (LibTorch's CPU half), cuda (the other half), nvidia (what that
#                                         half loads, and NVIDIA's compiler), window (the packages and sources of the visualizer), tests
#                                         (packages that only tests use); default: all but cuda and nvidia
#   provision.sh --download FOLDER [--cuda]   brings all of it into FOLDER, for a machine without network (RANKLAB_PACKAGES=FOLDER)
# RANKLAB_SKIP_PACKAGES=1: leave the system's packages to me. RANKLAB_TORCH_ROOT: a LibTorch of my own. RANKLAB_SKIP_VIZ=1: no window.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$here/home.sh"
packages=(g++ cmake ninja-build ccache mold pkg-config python3 ca-certificates
          libgloo-dev libcli11-dev libgtest-dev libgmock-dev nlohmann-json3-dev libtomlplusplus-dev zlib1g-dev libpcre2-dev libutf8proc-dev libxxhash-dev libssl-dev bible-kjv)
window_packages=(libglfw3-dev libgl-dev libpng-dev libgl1-mesa-dri fonts-dejavu-core xvfb xauth)
test_packages=(openmpi-bin iproute2)
# A browser for the test of the HTML page. Ubuntu has it as a snap alone; there that test is skipped.
if grep -qs '^ID=debian' /etc/os-release; then test_packages+=(chromium); fi

verbose=""
say() { echo "ranklab setup: $*" >&2; }
note() { [ -n "$verbose" ] && say "$*"; return 0; }
die() { echo "ranklab: error: [setup] $*" >&2; exit 3; }
. "$here/pins.sh"
. "$here/packages.sh"
. "$here/cuda_wheels.sh"

# Runs the rest of this script's part alone among all clones. The kernel gives the lock back however we end.
only_one() {  # PART
  exec 9>"$cache/.lock-$1"
  if ! flock -n 9; then
    say "waits for another ranklab that downloads the same ($1) into $cache ..."
    flock 9
  fi
}

# How far a download is goes to the file that the build shows, or else onto the screen.
state="${RANKLAB_STATE:-}"
show_state() {
  local shown=
  while sleep 0.5 && kill -0 $$ 2>/dev/null; do
    [ -s "$state" ] || continue
    if [ -t 2 ]; then printf '\r\033[K%s' "$(cat "$state")" >&2
    elif [ $((SECONDS % 15)) = 0 ] && [ "$shown" != "$SECONDS" ]; then shown=$SECONDS; say "$(cat "$state")"; fi
  done
}
start_showing() {
  [ -z "$state" ] || return 0
  state="$cache/.state.$$"
  : >"$state"
  show_state 9>&- & shower=$!
  trap 'stop_showing' EXIT
}
stop_showing() {
  if [ -n "${shower:-}" ]; then
    kill "$shower" 2>/dev/null || true
    wait "$shower" 2>/dev/null || true
    [ -t 2 ] && printf '\r\033[K' >&2
    rm -f "$state" "$state.new"
    shower="" state=""
  fi
}

# fetch WORDS TARGET NAME FILE SHA256 [OFFSET LENGTH]: brings the file, or its piece, as TARGET unless it is there.
fetch() {
  local words=$1 target=$2 name=$3 file=$4 hash=$5 piece=() got
  [ $# -lt 7 ] || piece=(--piece "$6" "$7")
  mkdir -p "$(dirname "$target")"
  if [ -f "$target" ] && echo "$hash  $target" | sha256sum -c --status; then return; fi
  rm -f "$target"
  if ! got=$(python3 "$here/download.py" --package "$name" --file "$file" --sha256 "$hash" --to "$target" --say "$words" \
                     --state "$state" ${piece[@]+"${piece[@]}"} 2>&1); then
    stop_showing
    [ "$file" != "$torch_wheel" ] || hash=${torch_whole[2]}
    die "cannot download $words; got: $(tail -n 1 <<<"$got"); want: $file of PyPI's $name (sha256 $hash);" \
        "do: check the network and pip's index settings and run it again (it resumes), or provide the files in a folder: $(how_offline)"
  fi
}

also_offline="" then_offline=train
how_offline() {
  echo "./ranklab setup --download FOLDER$also_offline on a machine that has network and the same Debian, then here RANKLAB_PACKAGES=FOLDER ./ranklab $then_offline"
}

install_torch() {
  local home="$cache/torch-2.11.0" part="$cache/torch-2.11.0.part" download="$cache/download"
  if [ -f "$home/.complete" ]; then note "LibTorch 2.11.0: $home"; return; fi
  [ "$(uname -m)" = x86_64 ] || die "no LibTorch wheel for $(uname -m) is pinned; want x86_64; do: build with -DTorch_DIR=<your libtorch>/share/cmake/Torch"
  only_one torch
  [ ! -f "$home/.complete" ] || return 0
  start_showing
  [ -n "${RANKLAB_STATE:-}" ] || say "downloads the CPU half of LibTorch 2.11.0 (131 of the 531 MB of its wheel) and two libraries it loads (13 MB) into $cache"
  fetch "LibTorch 2.11.0" "$download/torch-cpu.piece" "${torch_cpu_piece[@]}"
  fetch "CUDA runtime" "$download/${cudart[1]}" "${cudart[@]}"
  fetch "CUDA profiling interface" "$download/${cupti[1]}" "${cupti[@]}"
  [ -z "$state" ] || echo "unpacks LibTorch" >"$state"
  rm -rf "$part" && mkdir -p "$part"
  python3 "$here/unpack_wheel.py" "$download/torch-cpu.piece" "$part" torch/include/ torch/lib/ || die "cannot unpack LibTorch into $part; do: check the disk"
  python3 "$here/unpack_wheel.py" "$download/${cudart[1]}" "$part" nvidia/
  python3 "$here/unpack_wheel.py" "$download/${cupti[1]}" "$part" nvidia/
  find "$part/nvidia" \( -name libcudart.so.13 -o -name libcupti.so.13 \) -exec mv {} "$part/torch/lib/" \;
  touch "$part/torch/.complete"
  rm -rf "$home" && mv "$part/torch" "$home" && rm -rf "$part" "$download/torch-cpu.piece"
  stop_showing
}

# The kernels of the CUDA half, for `./ranklab build cuda`. libtorch_cuda.so comes last: with it, all of them are there.
install_cuda() {
  local home="$cache/torch-2.11.0" part="$cache/torch-cuda.part" file="$cache/download/torch-cuda.piece"
  if [ -f "$home/lib/libtorch_cuda.so" ]; then note "LibTorch's CUDA half: $home"; return; fi
  only_one torch
  [ ! -f "$home/lib/libtorch_cuda.so" ] || return 0
  say "downloads the CUDA half of LibTorch 2.11.0 (372 MB) into $cache"
  start_showing
  fetch "LibTorch's CUDA half" "$file" "${torch_cuda_piece[@]}"
  rm -rf "$part" && mkdir -p "$part"
  python3 "$here/unpack_wheel.py" "$file" "$part" torch/lib/ torch/share/ || die "cannot unpack LibTorch's CUDA half into $part; do: check the disk"
  mkdir -p "$home/share"
  cp -a "$part/torch/share/." "$home/share/"
  find "$part/torch/lib" -mindepth 1 -maxdepth 1 ! -name libtorch_cuda.so -exec cp -a {} "$home/lib/" \;
  mv "$part/torch/lib/libtorch_cuda.so" "$home/lib/"
  rm -rf "$part" "$file"
  stop_showing
}

install_imgui() {
  local home="$cache/imgui-1.92.801" part="$cache/imgui-1.92.801.part" file="$cache/download/${imgui[1]}"
  if [ -f "$home/.complete" ]; then note "Dear ImGui 1.92, ImPlot, Test Engine: $home"; return; fi
  only_one imgui
  [ ! -f "$home/.complete" ] || return 0
  say "downloads Dear ImGui, ImPlot and ImGui Test Engine (PyPI source distribution imgui-bundle 1.92.801, 48 MB) into $cache"
  start_showing
  fetch "Dear ImGui" "$file" "${imgui[@]}"
  rm -rf "$part" && mkdir -p "$part"
  tar -xzf "$file" -C "$part" --strip-components=2 \
    imgui_bundle-1.92.801/external/imgui imgui_bundle-1.92.801/external/implot imgui_bundle-1.92.801/external/imgui_test_engine
  touch "$part/.complete"
  rm -rf "$home" && mv "$part" "$home" && rm -f "$file"
  stop_showing
}

provision() {  # PART
  case $1 in
    packages) [ -n "${RANKLAB_SKIP_PACKAGES:-}" ] || install_packages "${packages[@]}" ;;
    tests) [ -n "${RANKLAB_SKIP_PACKAGES:-}" ] || install_packages "${test_packages[@]}" ;;
    torch) [ -n "${RANKLAB_TORCH_ROOT:-}" ] || install_torch ;;
    cuda) [ -n "${RANKLAB_TORCH_ROOT:-}" ] || install_cuda ;;
    nvidia) [ -n "${RANKLAB_TORCH_ROOT:-}" ] || install_nvidia ;;
    window)
      if [ -n "${RANKLAB_SKIP_VIZ:-}" ]; then return; fi
      [ -n "${RANKLAB_SKIP_PACKAGES:-}" ] || install_packages "${window_packages[@]}"
      install_imgui ;;
    *) die "unknown part $1; want packages, torch, cuda, nvidia, window or tests" ;;
  esac
}

# One package manager run for all parts that were asked for.
main() {
  if [ "${1:-}" = --verbose ]; then verbose=1; shift; fi
  if [ "${1:-}" = --download ]; then shift; download_all "$@"; return; fi
  [ $# -gt 0 ] || set -- packages window tests torch
  mkdir -p "$cache"
  local part all=" $* "
  if [[ $all == *" nvidia "* ]]; then also_offline=" --cuda" then_offline="setup --cuda"; fi
  if [[ $all == *" window "* && $all == *" packages "* && -z ${RANKLAB_SKIP_VIZ:-} ]]; then packages+=("${window_packages[@]}"); fi
  if [[ $all == *" tests "* && $all == *" packages "* ]]; then packages+=("${test_packages[@]}"); fi
  for part in "$@"; do provision "$part"; done
}
main "$@"
