// One rank's recorder. Bounded memory: past `capacity` events new ones are counted in `dropped`, never silently lost.
// Thread rule: used by its rank's thread only.
#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/trace/event.h"

namespace ranklab {

class Tracer {
 public:
  Tracer(int global_rank, std::string label, size_t capacity = size_t{1} << 20);

  uint32_t intern(std::string_view name);  // same text, same index
  // Fills step and microbatch with the current ones when they are -1; an instant or counter ends where it begins.
  void record(const Event& event);
  void set_group(Axis axis, std::vector<int> global_ranks);  // once per axis; further calls replace it
  void set_step(int step) { step_ = step; }
  void set_microbatch(int microbatch) { microbatch_ = microbatch; }
  int step() const { return step_; }
  int microbatch() const { return microbatch_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }
  bool enabled() const { return enabled_; }

  const RankTrace& trace() const { return trace_; }
  RankTrace take();  // moves events and names out (intern again afterwards); rank, label and groups stay

 private:
  RankTrace trace_;
  std::unordered_map<std::string, uint32_t> index_;
  size_t capacity_;
  int step_ = -1;
  int microbatch_ = -1;
  bool enabled_ = true;
};

// Nanoseconds of the steady clock since the process-wide trace epoch (first call).
int64_t wall_now_ns();

}  // namespace ranklab
