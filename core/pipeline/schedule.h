// A pipeline schedule is data: for every rank the list of its actions, in order. The same object is executed on real
// tensors, timed (simulate.h), proven correct (verify.h), drawn, and written to a file (csv.h).
// A microbatch passes through a chain of stages. Most schedules have one chain, 0 .. num_stages-1. DualPipe holds the
// model twice: stages 0 .. p-1 are one copy and p .. 2p-1 the other; the first half of the microbatches passes
// through the first chain and the second half through the second. A rank may hold several stages (interleaved: r,
// r+p, ...; V: r and 2p-1-r). Torch-free. Thread rule: plain data.
#pragma once
#include <string>
#include <vector>

#include "core/pipeline/action.h"

namespace ranklab {

// An action's position in a schedule.
struct ActionPlace {
  int rank = -1;
  int index = -1;
};

struct Schedule {
  std::string name;
  int num_microbatches = 0;
  std::vector<int> rank_of_stage;
  int chain_length = 0;                    // number of stages that a microbatch passes
  std::vector<std::vector<Action>> ranks;  // [rank] -> its actions

  int num_ranks() const { return static_cast<int>(ranks.size()); }
  int num_stages() const { return static_cast<int>(rank_of_stage.size()); }
  int num_chains() const { return num_stages() / chain_length; }
  int rank(int stage) const { return rank_of_stage[static_cast<size_t>(stage)]; }
  bool is_first(int stage) const { return stage % chain_length == 0; }
  bool is_last(int stage) const { return stage % chain_length == chain_length - 1; }
  // The part of the model that a stage holds, which is the same for both copies in DualPipe.
  int part(int stage) const { return stage % chain_length; }
  int chain_of(int microbatch) const { return microbatch * num_chains() / num_microbatches; }
  bool passes(int stage, int microbatch) const { return chain_of(microbatch) == stage / chain_length; }
  // The number of microbatches that pass through a chain.
  int microbatches_of(int chain) const;
  // The share of a rank's work that one stage is: 1 / (stages of a chain per rank).
  double stage_share() const { return static_cast<double>(num_ranks()) / chain_length; }
  std::vector<int> stages_of(int rank) const;
};

// Only the forwards: each stage of the first model copy runs all microbatches before the rank's next stage begins.
Schedule forward_only(const Schedule& whole, int num_microbatches);

// One microbatch after another through the first chain, while no other runs. Backwards are whole, but that of the
// microbatch `split` is divided into B and W.
Schedule one_by_one(const Schedule& whole, int num_microbatches, int split);
// One microbatch through each chain, one after another. Backwards are divided if any of `whole` is.
Schedule one_per_chain(const Schedule& whole);

// The parameters of a schedule. Errors name the field and the nearest legal value.
struct ScheduleRequest {
  int num_ranks = 1;
  int num_microbatches = 1;
  int num_chunks = 1;  // stages per rank (virtual pipeline size), where the schedule lets the caller choose
  // Interleaved 1F1B: microbatches that pass one stage of a rank before its next one begins; 0: the fewest possible.
  int group_size = 0;
  // A backward and the rank's next forward will run as one pair (core/pipeline/overlap.h), which 1F1B's warm-up then
  // allows for.
  bool pairs = false;
};

// Time of one microbatch on one rank (all its stages together), in any unit. b + w is the full backward. c is the
// latency of a message between ranks, during which neither side is busy.
struct ScheduleCosts {
  double f = 1;
  double b = 1;
  double w = 1;
  double c = 0;
  // An overlapped pair takes pair_factor x (F + B + W) of its stages.
  double pair_factor = 1;
  // Fraction of an activation kept between its B and its W, 0 to 1. Qi et al.: 32 / (34 + 5 a s / h) for a transformer.
  double weight_grad_memory = 1;
};

// Throws kInvalidArgument naming the cost: f and b must be positive, the others not negative.
void require_legal(const ScheduleCosts& costs);

}  // namespace ranklab
