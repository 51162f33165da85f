// Which messages the ranks of a pipeline exchange, and in what order, for worlds whose messages have no tags (NCCL's):
// there the n-th send matches the n-th receive. A lane is one kind of message (outputs forward, or gradients back) from
// one rank to another, and both of its ends handle its messages in the order in which the sender produces them. A
// receiver that needs a later one first posts the earlier ones before it. Everything follows from the schedule, so all
// ranks know all lanes without communication. Cost: O(actions). Torch-free. Thread rule: pure functions.
#pragma once
#include <compare>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

// A message is identified by its content: the output of `stage` (forward), or the gradient of its input.
struct PipelineMessage {
  bool forward = false;
  int stage = 0;  // the stage that produces it
  int microbatch = 0;

  auto operator<=>(const PipelineMessage&) const = default;
  int consumer_stage() const { return forward ? stage + 1 : stage - 1; }
};

struct PipelineLane {
  int from = 0;  // pipeline ranks
  int to = 0;
  bool forward = false;

  auto operator<=>(const PipelineLane&) const = default;
};

struct LaneOrder {
  PipelineLane lane;
  std::vector<PipelineMessage> messages;  // in the order in which rank `from` produces them
};

// The lanes that carry messages, in ascending order, which is the order in which all ranks open them.
std::vector<LaneOrder> message_lanes(const Schedule& schedule);
PipelineLane lane_of(const Schedule& schedule, const PipelineMessage& message);

// The messages that an action needs from other ranks, and those it produces. The forward half of a pair comes first.
std::vector<PipelineMessage> needed_messages(const Schedule& schedule, const Action& action);
std::vector<PipelineMessage> made_messages(const Schedule& schedule, const Action& action);

enum class ReceiveOrder {
  kAsNeeded,  // messages with tags: in the order of the rank's own actions
  kAsSent     // in each lane, the sender's order
};

// [action] -> the receives that `rank` posts before it: those needed by this action and by the `prefetch` actions after
// it, unless they were posted already.
std::vector<std::vector<PipelineMessage>> receives_before(const Schedule& schedule, int rank, int prefetch,
                                                          ReceiveOrder order);

}  // namespace ranklab
