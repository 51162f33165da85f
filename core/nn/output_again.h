// An output that is not kept for backward but computed again there, from what is kept of its inputs (selective
// recomputation, Korthikanti et al. 2022, arXiv 2205.05198). Two ask for it: the backward of what made it and the
// gradient of the weight it was multiplied with, in either order (a schedule may do the second one later); it is
// computed for the first of them and freed with the second. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace ranklab {

class OutputAgain : public torch::CustomClassHolder {
 public:
  // For the weight's gradient; the bits of the forward. Once.
  virtual at::Tensor take() = 0;
};

// The output beside what computes it again; null: the output is kept.
struct RecomputableOutput {
  at::Tensor out;
  c10::intrusive_ptr<OutputAgain> again = {};
};

// Whether outputs that one pass over what is kept anyway would give again (norms, activations) are kept for the
// weights' gradients instead: faster by that pass, and an output a layer more memory. Process-wide, off at the start;
// choose before ranks start.
void keep_cheap_outputs(bool keep);
bool keeps_cheap_outputs();

}  // namespace ranklab
