// Which part of which backward is running: gradients that arrive meanwhile belong to it. A schedule that splits the
// backward (ZB-H1 and others) has two passes for a microbatch in a stage: B, then W. Torch-free. Thread rule: plain
// data.
#pragma once

namespace ranklab {

struct GradPass {
  int stage = 0;  // among the rank's own stages
  int microbatch = 0;
  bool completes = true;  // the microbatch's last pass in this stage (W or BW): no more gradients of it come
};

}  // namespace ranklab
