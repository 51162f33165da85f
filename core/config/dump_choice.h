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
  int64_t first_step = -1, last_step = -1;  // -1: the first of the run, which a checkpoint may begin late
  std::set<int64_t> ranks, microbatches;    // empty: all
  bool forward = true, backward = true;

  // Of a run whose first step is `begin`.
  DumpChoice in_run_from(int64_t begin) const;
  bool takes_step(int64_t step) const { return step >= first_step && step <= last_step; }
  bool takes_rank(int64_t rank) const { return ranks.empty() || ranks.contains(rank); }
  bool takes_microbatch(int64_t microbatch) const { return microbatches.empty() || microbatches.contains(microbatch); }
};

// "": the first step of all ranks. Throws kInvalidArgument naming the word.
DumpChoice dump_choice(const std::string& at);

// What a run has of each that a DumpChoice numbers.
struct DumpBounds {
  int64_t steps = 0, ranks = 0, microbatches = 0;
};
// Throws kInvalidArgument where --at names a step, rank or microbatch that the run never has: it would dump nothing,
// and nobody would be told.
void check_reached(const DumpChoice& choice, const DumpBounds& run);
// The same of a run that was asked for. Not a part of resolve(), which configurations derived from it pass, too: on one
// rank, or with one microbatch, they have fewer of each.
void check_reached(const RunPlan& asked);

// The patterns of --dump, which commas part.
std::vector<std::string> dump_patterns(const std::string& modules);

}  // namespace ranklab
