// Messages between pipeline stages: activations forward, gradients back. Between two stages of one rank the tensor is
// handed over directly; between ranks it is a message. Receives are posted some actions ahead, so that a message is in
// flight while the rank computes. A rank does not wait for its sends: when it receives a message that the peer computed
// from one of its own, that one must have arrived, so its buffer is free. Each message has its own tag, so no order of
// arrival is assumed. Where messages have no tags, the lanes of message_lanes.h order them, and
// tests/pipeline/message_program.h proves that they all arrive. Cost: [S, B, H] per message; the receive buffers of a
// few actions. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "core/comm/communicator.h"
#include "core/pipeline/message_lanes.h"
#include "core/pipeline/schedule.h"

namespace ranklab {

struct BoundaryTensor {
  std::vector<std::vector<int64_t>> shapes;  // by part of a chain: the shapes of what it sends to the next part
  at::TensorOptions options;
};

class StageMessages {
 public:
  // Both must outlive this. Collective over the pipeline; opens the lanes that are not open yet.
  StageMessages(Communicator& pipeline, const Schedule& schedule, BoundaryTensor boundary);

  void prepare(size_t action);  // call before each of the rank's actions
  at::Tensor take_activation(int stage, int microbatch) { return take({true, stage - 1, microbatch}); }
  at::Tensor take_gradient(int stage, int microbatch) { return take({false, stage + 1, microbatch}); }
  void give_activation(int stage, int microbatch, const at::Tensor& output) {
    give({true, stage, microbatch}, stage + 1, output);
  }
  void give_gradient(int stage, int microbatch, const at::Tensor& input_grad) {
    give({false, stage, microbatch}, stage - 1, input_grad);
  }
  void finish();  // waits until the last sends have arrived

 private:
  struct Sent {
    int peer = 0;
    size_t used_at = 0;  // position of its use in the peer's list of actions
    WorkPtr work;
  };

  at::Tensor take(const PipelineMessage& message);
  void give(const PipelineMessage& message, int consumer_stage, const at::Tensor& tensor);
  void post_receive(const PipelineMessage& message);
  MessageTag tag(const PipelineMessage& message) const;
  size_t cell(int stage, int microbatch) const;
  size_t made_at(const PipelineMessage& message) const;
  size_t used_at(const PipelineMessage& message) const;
  void release_sends(int peer, size_t place);

  Communicator& pipeline_;
  const Schedule& schedule_;
  BoundaryTensor boundary_;
  std::vector<std::vector<PipelineMessage>> receives_;  // [action] -> receives to post before it
  std::vector<size_t> forward_at_, backward_at_;        // [stage, microbatch] -> position in its rank's list of actions
  std::map<PipelineMessage, at::Tensor> kept_;          // between stages of this rank
  std::map<PipelineMessage, WorkPtr> coming_;
  std::vector<Sent> sent_;
};

// Tells the type checker what a stage received: all tp ranks have the same tensor, or each has a part of the sequence.
void type_boundary(const at::Tensor& tensor, bool sequence_parallel);

}  // namespace ranklab
