// Records a rank's memory by category as counters on its timeline: all categories at each record(), and, in between,
// under virtual time, each category after an op that changed the total by more than 1/64 of the rank's peak. The
// highest moment of a step is always recorded, even if it is inside an op. Tensors that a peer frees (a message it has
// read) disappear when the peer frees them, so the times of samples may differ from run to run. Cost: some atomic loads
// and stores per op while tracing. Thread rule: its rank's thread, where it must also be destroyed.
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
  struct Moment {
    int64_t virtual_ns = 0, wall_ns = 0;
  };
  Moment now() const;
  void sample();
  void look();            // notes the most that was held since the last look
  void record_highest();  // if a sample of what is held now would miss it
  void record(const CategoryBytes& bytes, Moment at, bool all);
  void record(uint32_t name, double value, Moment at);

  RankContext& ctx_;
  double limit_bytes_;
  uint32_t limit_name_;
  std::shared_ptr<MemoryBook> book_;
  std::array<uint32_t, std::tuple_size_v<CategoryBytes>> names_;
  CategoryBytes recorded_{};
  int step_ = -1;
  int64_t step_highest_ = 0;  // highest total recorded in this step
  CategoryBytes highest_{};   // highest moment of this step that is not recorded yet
  Moment highest_at_;
  int64_t last_look_ns_ = 0, known_peak_ = 0;
};

}  // namespace ranklab
