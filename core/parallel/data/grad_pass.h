// The backward pass that is currently running, to which arriving gradients belong. A schedule that splits the backward
// (ZB-H1 and others) has two passes per microbatch and stage: B, then W. Torch-free. Thread rule: plain data.
#pragma once

namespace ranklab {

struct GradPass {
  int stage = 0;  // index among this rank's stages
  int microbatch = 0;
  // whether this is the microbatch's last pass in this stage (W or BW), after which no further gradients come
  bool completes = true;
};

}  // namespace ranklab
