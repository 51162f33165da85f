// The measured cost of a part of a recorded rank's step: either one pass of a stage (F, B, W or BW), which is then
// applied in place of running another pass like it, or the whole step. Thread rule: its rank's thread.
#pragma once
#include <utility>

#include "core/comm/rank_context.h"
#include "core/plan/step_record.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

struct PassMemo {
  RankTime time = {};
  CategoryBytes before{}, after{};
  MemoryBook::Peaks peaks = {};
  TrafficCount traffic = {};
  std::pair<size_t, size_t> events = {};  // range in the rank's trace, in this step

  CategoryBytes kept() const { return minus(after, before); }
};

// Measures everything that the rank does from construction to end() as one pass.
class PassProbe {
 public:
  explicit PassProbe(RankContext& ctx);
  PassMemo end();

  // Adds the remaining cost of a repeated pass like `memo`, after its stand-in has taken its own time and bytes.
  void catch_up_time(const PassMemo& memo);
  // Traces the calls of `memo` as calls of this pass.
  void catch_up_events(const PassMemo& memo);
  // RETURNS: the bytes that were added.
  CategoryBytes catch_up_bytes(const PassMemo& memo);

 private:
  RankContext& ctx_;
  RankTime begin_;
  CategoryBytes bytes_;
  MemoryBook::Peaks peaks_;
  size_t events_;
};

}  // namespace ranklab
