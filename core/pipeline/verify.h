// Is a schedule right? Proven from the lists of actions alone: every microbatch is forwarded and differentiated once in
// every stage it passes, on the rank that holds the stage; nothing is used before it is made; and the ranks never wait
// for each other in a circle. Cost: O(actions). Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

// What a rank holds at its worst moment, in microbatches of a whole rank (a stage counts 1 / stages of a chain on the
// rank). An activation lives from its F until its W (or BW) has run.
struct StageMemory {
  double peak_activations = 0;
  // The same with what is left between B and W counted as weight_grad_memory of an activation, as ZB-2p's limit does.
  double peak_memory = 0;
  int peak_deferred = 0;      // microbatches of a stage that are between B and W at once
  int stages = 0;             // whose weights the rank holds
  int64_t messages_sent = 0;  // to other ranks: outputs forward, gradients backward
};

// Of one rank, from its own list of actions: O(its actions). REQUIRES: a right schedule. weight_grad_memory:
// ScheduleCosts'; it only changes peak_memory, and may be above 1.
StageMemory stage_memory(const Schedule& schedule, int rank, double weight_grad_memory = 1);

struct ScheduleProof {
  std::vector<std::string> problems;  // empty: the schedule is right. Each names ranks and actions; at most 20
  // Whether it also runs when a message keeps both sides waiting until the other is there, with the sends and receives
  // between two actions posted together (batch_isend_irecv). If not, the cycle.
  bool blocking_safe = false;
  std::string blocking_cycle;
  std::vector<StageMemory> memory;  // per rank; empty when there are problems
  int64_t messages = 0;             // between ranks, forward and backward
};

// weight_grad_memory: ScheduleCosts'; it only changes peak_memory.
ScheduleProof verify_schedule(const Schedule& schedule, double weight_grad_memory = 1);

// Throws kInvalidArgument with the first problems.
void require_sound(const Schedule& schedule);

}  // namespace ranklab
