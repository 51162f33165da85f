# shellcheck shell=bash disable=SC2154
# The system's packages, for provision.sh: installed by apt-get, from the network or from the folder RANKLAB_PACKAGES.

# Prints those of the packages that are not installed; a tool that came another way than by apt counts, too.
missing_packages() {
  local installed package
  installed=" $(dpkg-query -W -f '${Status}/${Package} ' "$@" 2>/dev/null || true) "
  for package in "$@"; do
    [[ $installed == *" installed/$package "* ]] || provided "$package" || echo "$package"
  done
}

provided() {
  case "$1" in
    g++ | cmake | ccache | mold | python3) command -v "$1" >/dev/null ;;
    ninja-build) command -v ninja >/dev/null ;;
    *) return 1 ;;
  esac
}

install_packages() {
  command -v dpkg-query >/dev/null || die "no dpkg here; got a distribution other than Debian or Ubuntu; want: $*; do: install them with your package manager, then set RANKLAB_SKIP_PACKAGES=1"
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} -eq 0 ]; then note "packages: all there"; return; fi
  only_one packages
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "packages are missing and there is no sudo; want: ${missing[*]}; do: as root, apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  say "installs packages: ${missing[*]}"
  start_showing
  : >"$cache/apt.log"
  # An installation that was killed leaves packages half configured: dpkg wants to end that first.
  "${as_root[@]}" dpkg --configure -a 9>&- >>"$cache/apt.log" 2>&1 || true
  if [ -n "${RANKLAB_PACKAGES:-}" ] && ls "$RANKLAB_PACKAGES"/*.deb >/dev/null 2>&1; then
    use_package_folder
  elif ! apt_get update -qq; then
    stop_showing
    die "apt-get update failed; got: $(tail -n 1 "$cache/apt.log"); want: the packages ${missing[*]};" \
        "do: check the network and /etc/apt/sources.list, or provide them in a folder: $(how_offline)"
  fi
  if ! apt_get install -y -q --no-install-recommends "${missing[@]}"; then
    stop_showing
    die "apt-get install failed; got: $(grep -E '^(E|W):' "$cache/apt.log" | tail -n 2 | tr '\n' ' '); want: the packages ${missing[*]};" \
        "do: see $cache/apt.log; without network, provide them in a folder: $(how_offline)"
  fi
  stop_showing
}

# apt-get with how far it is on the screen. Another apt-get that runs is waited for. The state has a pipe of its own: apt-get sets
# it non-blocking, and a package's script that found its output so would fail when the pipe is full. sudo closes fd 3 and above,
# hence the inner shell. fd 8 and 9 are our locks: a daemon that a package starts must not keep them.
apt_options=()
apt_get() {
  local line percent
  # shellcheck disable=SC2016
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c 'log=$1; shift; exec apt-get "$@" 3>&1 >>"$log" 2>&1' apt-get "$cache/apt.log" \
      -o DPkg::Lock::Timeout=600 -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 \
      ${apt_options[@]+"${apt_options[@]}"} "$@" 8>&- 9>&- </dev/null |
    while IFS= read -r line; do
      case $line in
        dlstatus:* | pmstatus:*)
          percent=${line#*:*:} percent=${percent%%[.:]*}
          if [[ $line == dl* ]]; then echo "packages: $percent % downloaded" >"$state"; else echo "packages: $percent % installed" >"$state"; fi ;;
      esac
    done
}

# The folder as a package source of its own, so that apt-get takes what is needed and nothing else.
use_package_folder() {
  local folder deb lists="$cache/apt-folder"
  folder=$(cd "$RANKLAB_PACKAGES" && pwd)
  if [ -f "$folder/SHA256SUMS" ]; then
    (cd "$folder" && sha256sum -c --quiet --ignore-missing SHA256SUMS) >>"$cache/apt.log" 2>&1 ||
      die "a file of $folder is broken; got: $(grep FAILED "$cache/apt.log" | head -n 3 | tr '\n' ' '); want: the hashes of its SHA256SUMS; do: copy the folder again"
  fi
  rm -rf "$lists" && mkdir -p "$lists/lists/partial"
  for deb in "$folder"/*.deb; do
    dpkg-deb -f "$deb" | sed '/^$/d'
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "${deb##*/}" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -c1-64)"
  done >"$lists/Packages"
  # The list and the packages must lie in one folder; links keep the caller's folder as it is.
  ln -s "$folder"/*.deb "$lists/"
  chmod -R a+rX "$lists"
  echo "deb [trusted=yes] file:$lists ./" >"$lists/sources.list"
  apt_options=(-o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$lists/lists" -o APT::Sandbox::User=root)
  apt_get update -qq || die "apt-get cannot read the packages of $folder; got: $(tail -n 1 "$cache/apt.log"); do: see $cache/apt.log"
}

# For a machine without network: every package that is needed on a bare system of this release, by the names and hashes that
# apt has verified, the wheels and the sources. apt-get gets an empty list of installed packages, so that it omits nothing.
download_all() {  # FOLDER [--cuda]
  local folder=${1:-} parts wheel usage="./ranklab setup --download FOLDER [--cuda]"
  [[ -n $folder && $folder != -* ]] || die "no folder to download into; got: ${folder:-nothing}; want: $usage"
  [[ $# -lt 2 || ( $# = 2 && $2 = --cuda ) ]] || die "setup --download accepts only --cuda after the folder; got: ${*:2}; want: $usage"
  if [ $# = 2 ]; then also_offline=" --cuda" then_offline="setup --cuda"; fi
  mkdir -p "$folder/partial" "$cache"
  folder=$(cd "$folder" && pwd)
  start_showing
  if [ -z "${RANKLAB_SKIP_PACKAGES:-}" ]; then
    say "downloads the Debian packages (about 300 MB) into $folder"
    parts=("${packages[@]}" "${window_packages[@]}" "${test_packages[@]}")
    : >"$folder/.status"
    local as_root=()
    apt_options=(-o "Dir::State::status=$folder/.status" -o "Dir::Cache::archives=$folder" -o Debug::NoLocking=1 -o APT::Sandbox::User=root)
    apt_get install -y -q --no-install-recommends --download-only "${parts[@]}" ||
      die "apt-get cannot download the packages; got: $(grep -E '^(E|W):' "$cache/apt.log" | tail -n 2 | tr '\n' ' '); do: as root, apt-get update, then again"
    rm -rf "$folder/.status" "$folder/partial" "$folder/lock"
  fi
  say "downloads LibTorch's wheel (531 MB), two CUDA libraries (13 MB) and Dear ImGui (48 MB) into $folder"
  fetch "LibTorch's wheel" "$folder/${torch_whole[1]}" "${torch_whole[@]}"
  fetch "CUDA runtime" "$folder/${cudart[1]}" "${cudart[@]}"
  fetch "CUDA profiling interface" "$folder/${cupti[1]}" "${cupti[@]}"
  fetch "Dear ImGui" "$folder/${imgui[1]}" "${imgui[@]}"
  if [ $# = 2 ]; then
    say "downloads NVIDIA's libraries and compiler (${#cuda_wheels[@]} wheels, 2 GB) into $folder"
    for wheel in "${cuda_wheels[@]}"; do
      read -r -a wheel <<<"${wheel//$'\n'/ }"
      fetch "${wheel[0]}" "$folder/${wheel[1]}" "${wheel[@]}"
    done
  fi
  stop_showing
  (cd "$folder" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | sort | xargs -d '\n' sha256sum >SHA256SUMS)
  say "done; on the other machine: RANKLAB_PACKAGES=FOLDER ./ranklab $then_offline"
}
