#!/usr/bin/env bash
# ranklab of a build with CUDA, over the stand-ins for CUDA's runtime and NCCL: --device cuda and --backend cuda run on
# GPUs that are not there, whose memory the host cannot reach. --backend cuda has one rank.
#
#     tests/cuda/stand_in/ranklab.sh train --device cuda --world-size 4
#
# $RANKLAB_STAND_IN_BUILD: the build's folder; else build/cuda of this checkout.
set -euo pipefail
build=${RANKLAB_STAND_IN_BUILD:-$(dirname "${BASH_SOURCE[0]}")/../../../build/cuda}
export RANKLAB_CUDA_MODULE=$build/bin/libranklab_cuda_stand_in.so
# LibTorch's CPU half has opened CUDA's runtime by the time that the module is.
export LD_PRELOAD=$build/tests/cuda/libcuda_stand_in.so
for file in "$RANKLAB_CUDA_MODULE" "$LD_PRELOAD"; do
  [ -e "$file" ] && continue
  echo "$0: there is no $file; do: ./ranklab build cuda ranklab ranklab_cuda_stand_in" >&2
  exit 3
done
exec "$build/bin/ranklab" "$@"
