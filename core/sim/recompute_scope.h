// While alive on a rank's thread, what runs takes its time but is no part of the model's FLOPs: it has been computed
// before (activation recomputation). So utilization (MFU) stays that of the model's own work. Scopes nest. Thread rule:
// its rank's thread.
#pragma once

namespace ranklab {

class RecomputeScope {
 public:
  RecomputeScope();
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;
};

}  // namespace ranklab
