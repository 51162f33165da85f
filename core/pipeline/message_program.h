// What the hosts of a pipeline ask of a library whose messages have no tags, and whether that can come to its end. The
// rules are NCCL's (2.28):
//   A channel is a communicator with one stream on each member. A launch hands transfers to a channel at once; they run
//   as one kernel, which begins when the launches before it on this channel have ended on its rank, and ends when each
//   of its transfers has met its other side. From one rank to another the n-th send on a channel meets the n-th
//   receive. The first transfers between two members connect them: there both hosts wait for each other inside the
//   launch, and both launches must connect the same directions ("Message truncated" otherwise). Channels that were
//   connected when they were opened never hold a host. An action begins when the actions before it on its rank, and the
//   launches that receive what it needs, have ended.
// A host may run ahead of its GPU only as far as its queue of launches is long, so it is taken to wait at each action:
// what ends that way ends with any queue. Cost: O(launches x ranks). Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "core/pipeline/message_lanes.h"

namespace ranklab {

struct Transfer {
  bool send = false;
  PipelineMessage message;
};

struct ProgramStep {
  int channel = -1;                 // -1: the rank's next action
  std::vector<Transfer> transfers;  // of a launch
};

struct MessageProgram {
  int num_channels = 0;
  bool connected = false;                       // all directions of all channels, before the first step
  std::vector<std::vector<ProgramStep>> ranks;  // [rank] -> what its host does, in order
};

// What StageMessages does over lanes: each a connected channel, each transfer a launch of its own, sends as soon as
// they are made.
MessageProgram lane_program(const Schedule& schedule, int prefetch);

// "" when the program carries every message of the schedule and ends; else what goes wrong first, with ranks and
// messages. REQUIRES: a sound schedule (verify.h).
std::string program_problem(const Schedule& schedule, const MessageProgram& program);

}  // namespace ranklab
