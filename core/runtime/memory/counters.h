// Records a rank's memory by category on its timeline, as counters: all categories at each record() and, in between,
// under virtual time, each category after an op that changed it by more than 1/64 of the rank's peak. Tensors that a
// peer frees (a message it has read) disappear when it does, so the times of samples may differ from run to run. Cost:
// one atomic load per op while tracing. Thread rule: its rank's thread, where it is also destroyed.
#pragma once
#include <array>
#include <memory>

#include "core/comm/rank_context.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

class MemoryCounters {
 public:
  // `limit_bytes`: memory of the modelled device, shown as the counter "memory/limit"; 0: not shown.
  explicit MemoryCounters(RankContext& ctx, int64_t limit_bytes = 0);
  ~MemoryCounters();
  MemoryCounters(const MemoryCounters&) = delete;
  MemoryCounters& operator=(const MemoryCounters&) = delete;
  void record();

 private:
  static constexpr size_t kCategories = static_cast<size_t>(MemoryCategory::kCount);
  void sample();
  void record(size_t category, int64_t bytes);
  void record(uint32_t name, double value);

  RankContext& ctx_;
  double limit_bytes_;
  uint32_t limit_name_;
  std::shared_ptr<MemoryBook> book_;
  std::array<uint32_t, kCategories> names_;
  std::array<int64_t, kCategories> recorded_{};
  int64_t recorded_total_ = 0;
};

}  // namespace ranklab
