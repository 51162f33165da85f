// The measured cost of a recorded rank's step, or of a part of it, which can be applied in place of running another
// part like it. Thread rule: its rank's thread.
#pragma once
#include "core/comm/rank_context.h"
#include "core/plan/step_record.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

struct CostMemo {
  RankTime time = {};
  CategoryBytes before{}, after{};
  MemoryBook::Peaks peaks = {};
  TrafficCount traffic = {};

  CategoryBytes kept() const { return minus(after, before); }
};

// Measures everything that the rank does from construction to end().
class CostProbe {
 public:
  explicit CostProbe(RankContext& ctx);
  CostMemo end();

  // Adds what is left of `memo` after the time and bytes that a stand-in has taken since construction.
  void catch_up_time(const CostMemo& memo);
  // RETURNS: the bytes that were added.
  CategoryBytes catch_up_bytes(const CostMemo& memo);

 private:
  RankContext& ctx_;
  RankTime begin_;
  CategoryBytes bytes_;
  MemoryBook::Peaks peaks_;
  size_t events_;
};

}  // namespace ranklab
