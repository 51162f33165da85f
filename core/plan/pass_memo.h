// The measured cost of one pass of a stage (F, B, W or BW) on a recorded rank: time, bytes kept and peak bytes, calls.
// Taken from a pass that ran, and applied instead of running one like it. Thread rule: its rank's thread.
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
  KernelTimes kernel_times{};
  CategoryBytes kept{};            // at its end, relative to before
  MemoryBook::Peaks highest = {};  // at its peak, relative to before
  TrafficCount traffic = {};
};

// To those of the rank that this thread runs.
void add_to_book(const CategoryBytes& bytes);

// Measures what the rank does from construction to end() as one pass.
class PassProbe {
 public:
  explicit PassProbe(RankContext& ctx);
  PassMemo end();

  // Completes the cost of a repeated pass like `memo`, after its stand-in has taken its own time and bytes.
  // RETURNS: the memo's kernels but for those that the stand-in ran.
  KernelTimes catch_up_time(const PassMemo& memo);
  // RETURNS: the bytes that were added.
  CategoryBytes catch_up_bytes(const PassMemo& memo);

 private:
  RankContext& ctx_;
  int64_t compute_ns_;
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns_{};
  double flops_;
  KernelTimes kernel_times_;
  CategoryBytes bytes_{};
  MemoryBook::Peaks before_;
  size_t events_;
};

}  // namespace ranklab
