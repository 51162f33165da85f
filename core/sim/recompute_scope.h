// While alive on a rank's thread, ops take time but do not count as model FLOPs, since they recompute earlier results
// (activation recomputation). So utilization (MFU) covers only the model's own work. Scopes nest. Thread rule: its
// rank's thread.
#pragma once

namespace ranklab {

class RecomputeScope {
 public:
  RecomputeScope();
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;
};
bool recomputing();  // on this thread
// How many scopes are open on this thread; RETURNS: how many were. For pieces of work that take turns on a thread
// (core/parallel/interleave.h): each has its own.
int exchange_recompute_scopes(int open);

}  // namespace ranklab
