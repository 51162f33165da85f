// When and where tensors are dumped: the setting --at, as in "step=3..5 rank=0,4 microbatch=0 pass=forward".
// Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace ranklab {

struct RunPlan;

struct DumpChoice {
  // -1: the first step of the run, which is not 0 when it resumes from a checkpoint
  int64_t first_step = -1, last_step = -1;
  std::set<int64_t> ranks, microbatches;  // empty: all
  bool forward = true, backward = true;

  // The same choice, with the first step filled in for a run whose first step is `begin`.
  DumpChoice in_run_from(int64_t begin) const;
  bool takes_step(int64_t step) const { return step >= first_step && step <= last_step; }
  bool takes_rank(int64_t rank) const { return ranks.empty() || ranks.contains(rank); }
  bool takes_microbatch(int64_t microbatch) const { return microbatches.empty() || microbatches.contains(microbatch); }
};

// "" means the first step of all ranks. Throws kInvalidArgument naming the word.
DumpChoice dump_choice(const std::string& at);

// How many steps, ranks and microbatches a run has.
struct DumpBounds {
  int64_t steps = 0, ranks = 0, microbatches = 0;
};
// Throws kInvalidArgument where --at names a step, rank or microbatch that the run does not have: otherwise it would
// silently dump nothing.
void check_reached(const DumpChoice& choice, const DumpBounds& run);
// The same check for the run that the user requested. It is not part of resolve(), because configurations derived from
// that run (on one rank, or with one microbatch) also pass through resolve() and have fewer of each.
void check_reached(const RunPlan& asked);

// The comma-separated patterns of --dump.
std::vector<std::string> dump_patterns(const std::string& modules);

}  // namespace ranklab
