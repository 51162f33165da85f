// The input of a model's forward, and which result is wanted. Legend: B sequences, S tokens each. Thread rule: plain
// data.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace ranklab {

// The documents that are packed into the sequences of a batch, the same on every rank of a model-parallel group.
struct Documents {
  std::vector<std::vector<int64_t>> starts;  // DocumentStarts (core/parallel/context/context_attention.h)
  bool separate = true;                      // queries attend only to keys of their own document
  at::Tensor position_BS = {};  // positions that restart at 0 in each document; undefined: positions in the sequence
  at::Tensor segment_BS = {};   // the number of each position's document; undefined: documents do not attend separately
};

struct Batch {
  at::Tensor tokens_BS;      // int64, the same on every rank of a model-parallel group
  at::Tensor targets_BS;     // int64, next tokens; -100 is ignored
  int64_t first_sample = 0;  // index of the first sequence in this step's global batch: selects the dropout mask
  int64_t step = 0;
  // `step` and `first_sample` as a tensor on the device, where a pass is recorded (core/nn/device_random.h); undefined:
  // the fields above apply.
  at::Tensor random_offset = {};
  std::shared_ptr<const Documents> documents = nullptr;  // null: each sequence is one document
  // The factor that multiplies the experts' balancing losses before backward. It turns their sums over tokens into
  // means over all tokens of the global batch (tokens without a target are routed, too), and includes the loss scaler's
  // factor.
  double balance_scale = 1.0;
  at::Tensor recorded_balance_scale = {};  // the same as a tensor on the device, where a pass is recorded

  // Whether the pass is, or may later be, recorded as a CUDA graph, which the host takes no part in.
  bool is_recorded() const { return random_offset.defined(); }
};

// What the last stage returns for a microbatch.
enum class StageResult { kLoss, kLogits };

}  // namespace ranklab
