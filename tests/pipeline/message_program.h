// The calls that the hosts of a pipeline make to a library whose messages have no tags, and whether they can complete.
// The rules are NCCL's (2.28):
//   A channel is a communicator with one stream on each member. A launch hands transfers to a channel at once; they run
//   as one kernel, which begins when the launches before it on this channel have ended on its rank, and ends when each
//   of its transfers has met its counterpart. From one rank to another the n-th send on a channel matches the n-th
//   receive. The first transfers between two members connect them: there both hosts wait for each other inside the
//   launch, and both launches must connect the same directions ("Message truncated" otherwise). Channels that were
//   connected when they were opened never hold a host. An action begins when the actions before it on its rank, and the
//   launches that receive what it needs, have ended.
// A host may run ahead of its GPU only by the length of its launch queue. Here it is assumed to wait at each action,
// because a program that completes under this assumption completes with a queue of any length. Cost: O(launches x
// ranks). Torch-free. Thread rule: pure functions.
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
  std::vector<Transfer> transfers;  // the transfers of a launch
};

struct MessageProgram {
  int num_channels = 0;
  bool connected = false;  // whether all directions of all channels are connected before the first step
  std::vector<std::vector<ProgramStep>> ranks;  // [rank] -> the steps of its host, in order
};

// What StageMessages does over lanes: each lane is a connected channel, each transfer a separate launch, and sends are
// launched as soon as their data is produced.
MessageProgram lane_program(const Schedule& schedule, int prefetch);

// "" when the program carries every message of the schedule and completes; else the first problem, with ranks and
// messages. REQUIRES: a sound schedule (verify.h).
std::string program_problem(const Schedule& schedule, const MessageProgram& program);

}  // namespace ranklab
