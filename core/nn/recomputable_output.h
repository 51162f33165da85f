// An output that backward recomputes from saved inputs instead of saving it (selective recomputation, Korthikanti et
// al. 2022, arXiv 2205.05198). It has two users, in either order: the backward of the op that made it, and the gradient
// of the weight with which it was multiplied (which a schedule may defer). The first user recomputes it, and it is
// freed after the second. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace ranklab {

class OutputRecomputer : public torch::CustomClassHolder {
 public:
  // The output, for the weight's gradient; bit for bit that of the forward. Call once.
  virtual at::Tensor take() = 0;
  // The output has only the first user.
  virtual void will_not_be_taken() {}
};

// An output and the object that recomputes it; null: the output is saved.
struct RecomputableOutput {
  at::Tensor out;
  c10::intrusive_ptr<OutputRecomputer> recomputer = {};

  // The output for something else than a product with a weight.
  at::Tensor for_no_product() const {
    if (recomputer) recomputer->will_not_be_taken();
    return out;
  }
};

// Whether outputs that are cheap to recompute from saved tensors (norms, activations) are nevertheless saved for the
// weights' gradients. This avoids one pass over them and costs the memory of the outputs. Process-wide, off initially;
// choose before ranks start.
void keep_cheap_outputs(bool keep);
bool keeps_cheap_outputs();

}  // namespace ranklab
