// What one pass of a stage (F, B, W or BW) came to on a recorded rank: time, bytes that stay and that are there at its
// fullest moment, calls. Taken from a pass that ran, and applied in place of one like it. Thread rule: its rank's
// thread.
#pragma once
#include <array>
#include <cstdint>
#include <map>

#include "core/comm/rank_context.h"
#include "core/plan/category_bytes.h"
#include "core/plan/traffic_count.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

struct PassMemo {
  int64_t compute_ns = 0;
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns{};
  double flops = 0;
  CategoryBytes kept{};            // more than before, at its end
  MemoryBook::Peaks highest = {};  // more than before, at its fullest moment
  TrafficCount traffic = {};
};

// From here to end(), what the rank does is a pass.
class PassProbe {
 public:
  explicit PassProbe(RankContext& ctx);
  PassMemo end();

  // In place of a pass like `memo`, once what stands for it has taken the time and the bytes that it takes itself.
  void catch_up_time(const PassMemo& memo);
  void catch_up_bytes(const PassMemo& memo);

 private:
  RankContext& ctx_;
  int64_t compute_ns_;
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns_{};
  double flops_;
  CategoryBytes bytes_{};
  MemoryBook::Peaks before_;
  size_t events_;
};

}  // namespace ranklab
