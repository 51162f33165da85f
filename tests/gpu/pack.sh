#!/usr/bin/env bash
# Gathers in .gpu/ (git-ignored, at most 50 MiB) what a machine with a GPU but without network lacks to run the proof
# kit: what this build made (the program, the CUDA module, the tests that need a GPU) with the shared libraries they
# load, and, with --sources, the Debian packages that a build over there needs. LibTorch, CUDA and NCCL are the other
# machine's own (pip's torch will do).   tests/gpu/pack.sh [--sources]   REQUIRES: ./ranklab build cuda gpu_kit
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build="$root/build/cuda" out="$root/.gpu"
rm -rf "$out" && mkdir -p "$out/bin" "$out/lib"

[ -x "$build/bin/ranklab" ] || { echo "pack.sh: no $build/bin/ranklab; do: ./ranklab build cuda gpu_kit" >&2; exit 3; }
programs=("$build/bin/ranklab" "$build/bin/libranklab_cuda.so")
while read -r test; do programs+=("$(find "$build/tests" -name "$test" -type f -perm -u+x)"); done <"$build/tests/gpu_tests.txt"
for program in "${programs[@]}"; do cp "$program" "$out/bin/"; done
strip --strip-debug "$out"/bin/*

# Not the C library, nor what comes with LibTorch, CUDA and the driver.
for program in "$out"/bin/*; do
  LD_LIBRARY_PATH=${RANKLAB_TORCH_LIB:-} ldd "$program" | awk '$3 ~ /^\// {print $3}'
done | sort -u | grep -vE '/(libc|libm|libdl|librt|libutil|libpthread|libgcc_s|libstdc\+\+|ld-linux[^/]*|libtorch[^/]*|libc10[^/]*|libcu[^/]*|libnv[^/]*|libnccl|libgomp[^/]*)[-.]' |
  while read -r library; do cp -L "$library" "$out/lib/"; done
cp "$build/tests/gpu_tests.txt" "$out/"
(cd "$root" && git rev-parse --short HEAD) >"$out/commit"

if [ "${1:-}" = --sources ]; then
  mkdir -p "$out/debs" && cd "$out/debs"
  apt-get download -qq libgloo-dev libgloo0 libhiredis0.14 libhiredis-dev libibverbs1 libibverbs-dev libnl-3-200 \
    libnl-route-3-200 libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libgtest-dev libgmock-dev googletest \
    libxxhash-dev libssl-dev libssl3 zlib1g-dev zlib1g mold ccache
fi
du -sh "$out" | cut -f1
