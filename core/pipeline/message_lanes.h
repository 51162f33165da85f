// Which messages the ranks of a pipeline exchange, and in what order, for worlds whose messages have no tags (NCCL's):
// there the n-th send meets the n-th receive. A lane is one kind of message (outputs forward, or gradients back) from
// one rank to another, and both of its ends take its messages in the order in which the sender makes them. A receiver
// that needs a later one first posts the earlier ones before it. Everything follows from the schedule, so all ranks
// know all lanes without asking. Cost: O(actions). Torch-free. Thread rule: pure functions.
#pragma once
#include <compare>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

// By what it carries: the output of `stage` (forward), or the gradient of its input.
struct PipelineMessage {
  bool forward = false;
  int stage = 0;  // that made it
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
  std::vector<PipelineMessage> messages;  // as `from` makes them
};

// The lanes that carry anything, ascending: the order in which all ranks open them.
std::vector<LaneOrder> message_lanes(const Schedule& schedule);
PipelineLane lane_of(const Schedule& schedule, const PipelineMessage& message);

// What an action needs of other ranks, and what it makes for them. The forward half of a pair comes first.
std::vector<PipelineMessage> needed_messages(const Schedule& schedule, const Action& action);
std::vector<PipelineMessage> made_messages(const Schedule& schedule, const Action& action);

enum class ReceiveOrder {
  kAsNeeded,  // messages with tags: as the rank's own actions come
  kAsSent     // in each lane the sender's order
};

// [action] -> the receives that `rank` posts before it: of what this action and the `prefetch` ones after it need, if
// not posted yet.
std::vector<std::vector<PipelineMessage>> receives_before(const Schedule& schedule, int rank, int prefetch,
                                                          ReceiveOrder order);

}  // namespace ranklab
