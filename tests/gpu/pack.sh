#!/usr/bin/env bash
# Gathers in .gpu/ (git-ignored, at most 50 MiB) what a machine with a GPU but without network lacks to run the proof
# kit. LibTorch, CUDA and NCCL are that machine's own (pip's torch will do).
#   tests/gpu/pack.sh           what this build made: the program, the CUDA module, the tests that need a GPU, and the
#                               shared libraries they load.  REQUIRES: ./ranklab build cuda gpu_kit
#   tests/gpu/pack.sh --debs    instead the Debian packages with which tests/gpu/build.sh builds over there
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build="$root/build/cuda" out="$root/.gpu"
rm -rf "$out" && mkdir -p "$out"
(cd "$root" && git rev-parse --short HEAD) >"$out/commit"

pack_debs() {
  mkdir -p "$out/debs" && cd "$out/debs"
  apt-get download -qq libgloo-dev libgloo0 libhiredis0.14 libhiredis-dev libibverbs1 libibverbs-dev libnl-3-200 \
    libnl-route-3-200 libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libgtest-dev libgmock-dev libxxhash-dev \
    libssl-dev zlib1g-dev libpcre2-dev libpcre2-8-0 libpcre2-16-0 libpcre2-32-0 libpcre2-posix3 libutf8proc-dev libutf8proc2 2>/dev/null
}

# Not the C library, nor what comes with LibTorch, CUDA and the driver.
loaded_libraries() {
  local program
  for program in "$out"/bin/*; do ldd "$program" | awk '$3 ~ /^\// {print $3}'; done | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libutil|libpthread|libgcc_s|libstdc\+\+|ld-linux[^/]*|libtorch[^/]*|libc10[^/]*|libcu[^/]*|libnv[^/]*|libnccl|libgomp[^/]*|libranklab[^/]*)[-.]'
}

pack_build() {
  [ -x "$build/bin/ranklab" ] || { echo "pack.sh: no $build/bin/ranklab; do: ./ranklab build cuda gpu_kit" >&2; exit 3; }
  mkdir -p "$out/bin" "$out/lib"
  cp "$build/bin/ranklab" "$build"/bin/libranklab_*.so "$out/bin/"
  local test library
  while read -r test; do cp "$(find "$build/tests" -name "$test" -type f -perm -u+x)" "$out/bin/"; done <"$build/tests/gpu_tests.txt"
  strip --strip-debug "$out"/bin/*
  while read -r library; do cp -L "$library" "$out/lib/"; done < <(loaded_libraries)
  cp "$build/tests/gpu_tests.txt" "$out/"
  # One archive, a third of the size: machine.sh unpacks it.
  tar -C "$out" -czf "$out/build.tgz" bin lib && rm -r "$out/bin" "$out/lib"
}

if [ "${1:-}" = --debs ]; then pack_debs; else pack_build; fi
du -sh "$out" | cut -f1
