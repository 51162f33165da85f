// The backward pass that is running, to which the arriving gradients belong. A schedule that splits the backward (ZB-H1
// and others) has two passes per microbatch and stage: B, then W. Torch-free. Thread rule: plain data.
#pragma once

namespace ranklab {

struct GradPass {
  int stage = 0;  // index among this rank's stages
  int microbatch = 0;
  bool completes = true;  // the microbatch's last pass in this stage (W or BW), with no further gradients
};

}  // namespace ranklab
