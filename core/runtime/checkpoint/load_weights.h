// Loads a checkpoint's weights and buffers into a model that is not trained, whatever layout wrote it (training loads
// them together with its optimizer: restore.h). Values are rounded where a parameter has another dtype. Cost: reads
// what this rank holds of the model. Thread rule: every rank calls it, on its own thread; the checkpoint is shared.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/tensor_source.h"
#include "core/config/train_config.h"
#include "core/model/causal_lm.h"

namespace ranklab {

// The buffers that a checkpoint must contain for this run. All others keep their initial values: imported weights have
// no buffers, and a run with other precision settings saved no amax histories, or some for other modules or lengths.
struct StoredBuffers {
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  int64_t new_histories = 0;  // amax histories of delayed scaling that begin at zero
};
StoredBuffers stored_buffers(const Checkpoint& checkpoint, CausalLm& model, const TrainConfig& config);

// Throws kBadFile naming a tensor that is missing or whose shape differs from the model's.
void load_weights(const Checkpoint& checkpoint, CausalLm& model, const TrainConfig& config);
// The same for whole tensors ("weight/NAME"), such as those of a Hugging Face folder. Cost: every rank reads every
// tensor of which it has a part, one rank after the other.
void load_weights(const TensorSource& source, CausalLm& model);

}  // namespace ranklab
