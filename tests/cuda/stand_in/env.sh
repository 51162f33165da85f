# Sourced: has a build's programs find the stand-ins in place of CUDA's runtime and NCCL. $build: the build's folder.
export RANKLAB_CUDA_MODULE=$build/bin/libranklab_cuda_stand_in.so
for file in "$RANKLAB_CUDA_MODULE" "$build/tests/cuda/libcuda_stand_in.so"; do
  [ -e "$file" ] && continue
  echo "$0: there is no $file; do: ./ranklab build cuda ranklab ranklab_cuda_stand_in" >&2
  exit 3
done
# LibTorch's CPU half has opened CUDA's runtime by the time that the module is.
export LD_PRELOAD=$build/tests/cuda/libcuda_stand_in.so
