// Proves that a schedule is correct, from the lists of actions alone: every microbatch runs forward and backward once
// in every stage it passes, on the rank that holds the stage; nothing is used before it is produced; and the ranks
// never deadlock. Cost: O(actions). Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

// What a rank holds at its peak, in microbatches of a whole rank (a stage counts as 1 / number of the rank's stages in
// a chain). An activation exists from its F until its W (or BW) has run.
struct StageMemory {
  double peak_activations = 0;
  // The same, but an activation between B and W counts as weight_grad_memory, as in ZB-2p's limit.
  double peak_memory = 0;
  int peak_deferred = 0;      // largest number of microbatches of a stage that are between B and W at the same time
  int stages = 0;             // number of stages whose weights the rank holds
  int64_t messages_sent = 0;  // to other ranks: outputs forward, gradients backward
};

// For one rank, from its own list of actions: O(its actions). REQUIRES: a correct schedule. weight_grad_memory: as in
// ScheduleCosts; it only affects peak_memory, and may be above 1.
StageMemory stage_memory(const Schedule& schedule, int rank, double weight_grad_memory = 1);

struct ScheduleProof {
  std::vector<std::string> problems;  // empty: the schedule is correct. Each names ranks and actions; at most 20
  // Whether it also completes with blocking messages (rendezvous), where the sends and receives between two actions are
  // posted together (batch_isend_irecv). If not, blocking_cycle describes the cycle.
  bool blocking_safe = false;
  std::string blocking_cycle;
  std::vector<StageMemory> memory;  // per rank; empty when there are problems
  int64_t messages = 0;             // between ranks, forward and backward
};

// weight_grad_memory: as in ScheduleCosts; it only affects peak_memory.
ScheduleProof verify_schedule(const Schedule& schedule, double weight_grad_memory = 1);

// Throws kInvalidArgument with the first problems.
void require_sound(const Schedule& schedule);

}  // namespace ranklab
