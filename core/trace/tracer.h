// One rank's recorder. Memory is bounded: beyond `capacity` events, new ones are counted in `dropped`, never silently
// lost. Events may also be shown to viewers during the run, and at each point of recording a stepper may hold the rank
// (boundary.h); without these, each point costs one branch. Thread rule: used by its rank's thread only.
#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/trace/boundary.h"
#include "core/trace/event.h"
#include "core/trace/event_sink.h"
#include "core/trace/trace_level.h"

namespace ranklab {

class Tracer {
 public:
  Tracer(int global_rank, std::string label, size_t capacity = size_t{1} << 20);

  uint32_t intern(std::string_view name);  // same text, same index
  // Fills in the current step and microbatch when they are -1; an instant or counter ends where it begins.
  void record(const Event& event);
  void record(Event event, std::vector<double> array);       // together with an array of numbers (Event::array)
  void set_group(Axis axis, std::vector<int> global_ranks);  // once per axis; further calls replace it
  void set_step(int step) { step_ = step; }
  void set_microbatch(int microbatch) { microbatch_ = microbatch; }
  int step() const { return step_; }
  int microbatch() const { return microbatch_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }
  bool enabled() const { return enabled_; }
  void set_level(TraceLevel level) { level_ = level; }
  // Whether an event of this kind would currently be recorded.
  bool wants(EventKind kind) const { return enabled_ && level_of(kind) <= level_; }
  // If off, events go only to the sink and the stepper.
  void set_keeping(bool keeping) { keeping_ = keeping; }

  // Null: none. Both must outlive their use here.
  void set_sink(EventSink* sink) { sink_ = sink; }
  void set_stepper(RankHolder* stepper) { stepper_ = stepper; }
  bool has_stepper() const { return stepper_ != nullptr; }
  // The rank may be held here, before what the boundary names; step and microbatch are filled in. Check has_stepper()
  // first, which avoids constructing the boundary.
  void at_boundary(Boundary boundary);
  // Reports a value that no counter of the trace contains, for conditions of breakpoints.
  void observe(std::string_view counter, double value, int64_t virtual_ns);

  const RankTrace& trace() const { return trace_; }
  // Moves out everything recorded since the last call, with all names so far; name indices stay valid.
  RankTrace take_events();
  RankTrace take();  // moves events and names out (names must be interned anew afterwards); rank, label and groups stay

 private:
  void complete(Event& event) const;
  void keep(const Event& event);
  void show(Event event, std::vector<double> array);

  RankTrace trace_;
  std::unordered_map<std::string, uint32_t> index_;
  size_t capacity_;
  int step_ = -1;
  int microbatch_ = -1;
  bool enabled_ = true;
  bool keeping_ = true;
  TraceLevel level_ = TraceLevel::kKernel;
  EventSink* sink_ = nullptr;
  RankHolder* stepper_ = nullptr;
};

// Nanoseconds of the steady clock since the process-wide trace epoch (the first call).
int64_t wall_now_ns();

}  // namespace ranklab
