#!/usr/bin/env bash
# Installs what the build needs: Debian/Ubuntu packages, LibTorch's wheel and Dear ImGui's sources. Says what it does in one line each, asks for
# sudo only when a package is missing, downloads only what is not in the cache, checks every download against its hash, and is silent and
# offline when all is there. Cache: $XDG_CACHE_HOME/ranklab (or ~/.cache/ranklab), shared by all clones.
set -euo pipefail
verbose=${1:-}
cache="${XDG_CACHE_HOME:-$HOME/.cache}/ranklab"
packages=(g++ cmake ninja-build ccache mold pkg-config python3 python3-pip ca-certificates unzip
          libgloo-dev libcli11-dev libgtest-dev libgmock-dev nlohmann-json3-dev libtomlplusplus-dev zlib1g-dev libxxhash-dev libssl-dev openmpi-bin iproute2 bible-kjv)
viz_packages=(libglfw3-dev libgl-dev libpng-dev libgl1-mesa-dri fonts-dejavu-core xvfb xauth)

say() { echo "ranklab setup: $*" >&2; }
note() { [ "$verbose" = --verbose ] && say "$*"; return 0; }
die() { echo "ranklab: error: [setup] $*" >&2; exit 3; }

install_packages() {
  command -v dpkg-query >/dev/null || die "no dpkg here; got another distribution than Debian or Ubuntu; do: install ${packages[*]} by your package manager, then set RANKLAB_SKIP_PACKAGES=1"
  local missing=() package
  for package in "${packages[@]}" "${viz_packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok' || provided "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then note "packages: all there"; return; fi
  say "installs packages: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "packages are missing; got no sudo; do: as root, apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq >/dev/null || die "apt-get update failed; do: check the network and /etc/apt/sources.list"
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$cache/apt.log" 2>&1 ||
    die "apt-get install failed; got: $(tail -n 2 "$cache/apt.log" | tr '\n' ' '); do: see $cache/apt.log"
}

# A tool that came another way than by apt counts, too.
provided() {
  case "$1" in
    g++ | cmake | ccache | mold | python3 | unzip) command -v "$1" >/dev/null ;;
    ninja-build) command -v ninja >/dev/null ;;
    python3-pip) python3 -m pip --version >/dev/null 2>&1 ;;
    *) return 1 ;;
  esac
}

# fetch FILE SHA256 COMMAND...: COMMAND puts FILE into $cache/download unless it is there; its hash is checked either way.
fetch() {
  local file=$1 hash=$2 folder="$cache/download"; shift 2
  mkdir -p "$folder"
  if ! { [ -f "$folder/$file" ] && echo "$hash  $folder/$file" | sha256sum -c --status; }; then
    rm -f "$folder/$file"
    "$@" >"$cache/download.log" 2>&1 || die "cannot download $file; got: $(tail -n 1 "$cache/download.log"); do: check the network and pip's index settings"
    echo "$hash  $folder/$file" | sha256sum -c --status ||
      die "$file does not have the pinned hash; got $(sha256sum "$folder/$file" | cut -c1-64); want $hash; do: delete $folder/$file and try again"
  fi
}

# wheel REQUIREMENT FILE SHA256
wheel() {
  fetch "$2" "$3" python3 -m pip --disable-pip-version-check download -q --no-deps -d "$cache/download" --only-binary=:all: \
    --python-version 3.11 --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux2014_x86_64 "$1"
}

install_torch() {
  local home="$cache/torch-2.11.0"
  if [ -f "$home/.complete" ]; then note "LibTorch 2.11.0: $home"; return; fi
  [ "$(uname -m)" = x86_64 ] || die "no LibTorch wheel for $(uname -m) is pinned; want x86_64; do: build with -DTorch_DIR=<your libtorch>/share/cmake/Torch"
  say "downloads LibTorch 2.11.0 (PyPI wheel, 531 MB) and two CUDA runtime libraries it loads (13 MB) into $cache"
  wheel torch==2.11.0 torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl 7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
  wheel nvidia-cuda-runtime==13.0.96 nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl \
    7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
  wheel nvidia-cuda-cupti==13.0.85 nvidia_cuda_cupti-13.0.85-py3-none-manylinux_2_25_x86_64.whl \
    4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8
  local part="$home.part.$$"
  rm -rf "$part" && mkdir -p "$part/cuda"
  unzip -q "$cache/download"/torch-2.11.0-*.whl 'torch/lib/*' 'torch/include/*' 'torch/share/*' -d "$part"
  unzip -q -o "$cache/download"/nvidia_cuda_runtime-*.whl '*/libcudart.so.13' -d "$part/cuda"
  unzip -q -o "$cache/download"/nvidia_cuda_cupti-*.whl '*/libcupti.so.13' -d "$part/cuda"
  find "$part/cuda" -name '*.so.13' -exec mv {} "$part/torch/lib/" \;
  touch "$part/torch/.complete"
  rm -rf "$home" && mv "$part/torch" "$home" && rm -rf "$part"
  rm -f "$cache/download"/torch-2.11.0-*.whl
}

install_imgui() {
  local home="$cache/imgui-1.92.801"
  if [ -f "$home/.complete" ]; then note "Dear ImGui 1.92, ImPlot, Test Engine: $home"; return; fi
  say "downloads Dear ImGui, ImPlot and ImGui Test Engine (PyPI source distribution imgui-bundle 1.92.801, 48 MB) into $cache"
  fetch imgui_bundle-1.92.801.tar.gz 7d790708affe7476969d397784b40eb91760a201ce752131e5bedf4d514e3a45 \
    python3 "$(dirname "$0")/fetch_sdist.py" imgui-bundle imgui_bundle-1.92.801.tar.gz "$cache/download"
  local part="$home.part.$$"
  rm -rf "$part" && mkdir -p "$part"
  tar -xzf "$cache/download/imgui_bundle-1.92.801.tar.gz" -C "$part" --strip-components=2 \
    imgui_bundle-1.92.801/external/imgui imgui_bundle-1.92.801/external/implot imgui_bundle-1.92.801/external/imgui_test_engine
  touch "$part/.complete"
  rm -rf "$home" && mv "$part" "$home"
}

mkdir -p "$cache"
exec 9>"$cache/.lock" && flock 9  # two clones may set up at once
[ -n "${RANKLAB_SKIP_PACKAGES:-}" ] || install_packages
[ -n "${RANKLAB_TORCH_ROOT:-}" ] || install_torch
[ -n "${RANKLAB_SKIP_VIZ:-}" ] || install_imgui
