// Loads a checkpoint's weights and buffers into a model that is not trained, whatever layout wrote it (training loads
// with its optimizer: restore.h). A parameter of another dtype gets rounded values. Cost: reads what this
// rank holds of the model. Thread rule: every rank calls it, on its own thread; the checkpoint is shared.
#pragma once
#include <string>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_source.h"
#include "core/model/causal_lm.h"

namespace ranklab {

// Whether the checkpoint lacks this buffer by right, which keeps its initial value: imported weights have none, and a
// run without delayed scaling saved no amax histories.
bool begins_anew(const Checkpoint& checkpoint, const std::string& buffer);

// Throws kBadFile naming a tensor that is missing or has another shape than the model's.
void load_weights(const Checkpoint& checkpoint, CausalLm& model);
// The same of whole tensors ("weight/NAME"), such as a Hugging Face folder's. Cost: every rank reads every tensor that
// it has a part of, one rank after the other.
void load_weights(const TensorSource& source, CausalLm& model);

}  // namespace ranklab
