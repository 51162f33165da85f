// While this object is alive on a rank's thread, ops take time but do not count as model FLOPs, because they recompute
// earlier results (activation recomputation). So utilization (MFU) covers only the model's own work. Scopes nest.
// Thread rule: its rank's thread.
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
// Sets the number of open scopes on this thread; RETURNS: the previous number. For pieces of work that are interleaved
// on a thread (core/parallel/interleave.h), each of which has its own number.
int exchange_recompute_scopes(int open);

}  // namespace ranklab
