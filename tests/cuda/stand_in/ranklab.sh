#!/usr/bin/env bash
# ranklab of a build with CUDA, over the stand-ins for CUDA's runtime and NCCL: --device cuda and --backend cuda run on
# GPUs that are not there, whose memory the host cannot reach. --backend cuda has one rank.
#
#     tests/cuda/stand_in/ranklab.sh train --device cuda --world-size 4
#
# $RANKLAB_STAND_IN_BUILD: the build's folder; else build/cuda of this checkout.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
build=${RANKLAB_STAND_IN_BUILD:-$here/../../../build/cuda}
. "$here/env.sh"
exec "$build/bin/ranklab" "$@"
