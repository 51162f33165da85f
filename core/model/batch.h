// The input of a model's forward and the wanted result. Legend: B sequences, S tokens each. Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace ranklab {

// The documents that are packed into the sequences of a batch, the same on every rank of a model-parallel group.
struct Documents {
  std::vector<std::vector<int64_t>> starts;  // DocumentStarts (core/parallel/context/context_attention.h)
  bool separate = true;                      // queries attend to keys of their own document alone
  at::Tensor position_BS = {};               // positions that begin again at 0; undefined: those in the sequence
  at::Tensor segment_BS = {};                // the number of each position's document; undefined: none is separate
};

struct Batch {
  at::Tensor tokens_BS;      // int64, the same on every rank of a model-parallel group
  at::Tensor targets_BS;     // int64, next tokens; -100 is ignored
  int64_t first_sample = 0;  // index of the first sequence in this step's global batch: selects the dropout mask
  int64_t step = 0;
  // `step` and `first_sample` on the device, where a pass is recorded (core/nn/device_random.h); undefined: those
  // above.
  at::Tensor random_offset = {};
  std::shared_ptr<const Documents> documents = nullptr;  // null: each sequence is one document
  // The factor before backward on sums over the tokens of experts' balancing losses, which are means over all tokens of
  // the global batch: those without a target are routed, too.
  double balance_scale = 1.0;
};

// What the last stage returns for a microbatch.
enum class StageResult { kLoss, kLogits };

}  // namespace ranklab
