# shellcheck shell=bash
# For ./ranklab setup --cuda: NVIDIA's libraries and compiler from PyPI, laid beside LibTorch as pip lays them (nvidia/ next to torch/),
# where LibTorch's CUDA half looks for them by its own run path and cmake/CudaModule.cmake for NCCL and nvcc. So a machine needs
# neither a CUDA toolkit nor NCCL of its own, only the driver to run. Sourced by provision.sh.
install_nvidia() {
  local home="$cache/nvidia" part="$cache/nvidia.part" wheel
  if [ -f "$home/.complete" ]; then note "NVIDIA's libraries: $home"; return; fi
  only_one nvidia
  [ ! -f "$home/.complete" ] || return 0
  say "downloads what LibTorch's CUDA half loads (cuBLAS, cuDNN, NCCL ...) and NVIDIA's compiler (${#cuda_wheels[@]} wheels, 2 GB; 4 GB unpacked) into $cache"
  start_showing
  # What a run before this one has unpacked stays, unless it was of other wheels.
  if ! printf '%s\n' "${cuda_wheels[@]}" | cmp -s - "$part/.wheels"; then
    rm -rf "$part" && mkdir -p "$part"
    printf '%s\n' "${cuda_wheels[@]}" >"$part/.wheels"
  fi
  # shellcheck disable=SC2154
  for wheel in "${cuda_wheels[@]}"; do
    # shellcheck disable=SC2086
    unpack_cuda_wheel "$part" $wheel
  done
  finish_toolkit "$part/nvidia/cu13"
  touch "$part/nvidia/.complete"
  rm -rf "$home" && mv "$part/nvidia" "$home" && rm -rf "$part"
  stop_showing
}

# Each is unpacked as soon as it is there, so that the disk never holds all of both.
unpack_cuda_wheel() {  # FOLDER PACKAGE FILE SHA256
  local file="$cache/download/$3"
  if [ -f "$1/.done-$3" ]; then return; fi
  fetch "$2" "$file" "$2" "$3" "$4"
  [ -z "$state" ] || echo "unpacks $2" >"$state"
  python3 "$here/unpack_wheel.py" "$file" "$1" nvidia/ || die "cannot unpack $2 into $1; do: check the disk"
  touch "$1/.done-$3"
  rm -f "$file"
}

# What a CUDA toolkit has and the wheels leave out: programs that may be run, and a name to link the runtime by.
finish_toolkit() {  # FOLDER
  find "$1/bin" "$1/nvvm/bin" -type f -exec chmod +x {} + 2>/dev/null || true
  ln -sf libcudart.so.13 "$1/lib/libcudart.so"
}
