#!/usr/bin/env bash
# Builds the program, the CUDA module and the tests that need a GPU on a machine without network and without Debian's
# packages: unpacks those that pack.sh --debs brought, and takes LibTorch and NCCL from python3's torch.
#   tests/gpu/build.sh [BUILD_FOLDER]     (default: build/cuda)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/cuda}
prefix="$root/build/gpu_prefix"
mkdir -p "$prefix"
for package in "$root"/.gpu/debs/*.deb; do dpkg -x "$package" "$prefix"; done
torch=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
nccl="$torch/../nvidia/nccl"
libraries="$prefix/usr/lib/x86_64-linux-gnu"
export PATH="$prefix/usr/bin:$PATH" CPATH="$prefix/usr/include:$prefix/usr/include/x86_64-linux-gnu"
# The packages' links to shared zlib and OpenSSL point outside of them: the system's zlib, and a static OpenSSL.
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRANKLAB_WITH_CUDA=ON -DRANKLAB_WITH_VIZ=OFF \
  -DRANKLAB_BUILD_EXAMPLES=OFF -DRANKLAB_WERROR=OFF -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined -DCMAKE_PREFIX_PATH="$prefix/usr" -DRANKLAB_TORCH_ROOT="$torch" \
  -DNCCL_INCLUDE_DIR="$nccl/include" -DNCCL_LIBRARY="$nccl/lib/libnccl.so.2" \
  -DGLOO_LIBRARY="$prefix/usr/lib/libgloo.so.0" -DGLOO_INCLUDE_DIR="$prefix/usr/include" \
  -DZLIB_LIBRARY="$(ldconfig -p | awk '$1 == "libz.so.1" {print $NF; exit}')" -DZLIB_INCLUDE_DIR="$prefix/usr/include" \
  -DOPENSSL_USE_STATIC_LIBS=TRUE -DOPENSSL_ROOT_DIR="$prefix/usr" -DOPENSSL_INCLUDE_DIR="$prefix/usr/include" \
  -DOPENSSL_CRYPTO_LIBRARY="$libraries/libcrypto.a" -DRANKLAB_CUDA_ARCHITECTURES="${RANKLAB_CUDA_ARCHITECTURES:-90}"
cmake --build "$build" --target gpu_kit -j "$(nproc)"
