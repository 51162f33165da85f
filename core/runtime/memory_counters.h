// Puts a rank's memory by category on its timeline: one counter event per category each time record() is called.
#pragma once
#include <array>
#include <memory>

#include "core/comm/rank_context.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

class MemoryCounters {
 public:
  explicit MemoryCounters(RankContext& ctx);
  void record();

 private:
  RankContext& ctx_;
  std::array<uint32_t, static_cast<size_t>(MemoryCategory::kCount)> names_;
};

}  // namespace ranklab
