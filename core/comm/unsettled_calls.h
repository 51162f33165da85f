// Calls of a GPU for which its rank has waited, but whose times its host does not know yet (call_timing.h). Each one's
// event is recorded once they are known, in the order of the waits. Thread rule: its rank's thread.
#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "core/comm/call_timing.h"
#include "core/trace/tracer.h"

namespace ranklab {

void set_wall_times(Event& event, const CallTimes& times);
// `sent_bytes`: of an all_to_all, to each member; else empty.
void record_call(Tracer& tracer, const Event& event, std::vector<double> sent_bytes);

class UnsettledCalls {
 public:
  // Null: nothing is recorded, and nothing is ever added.
  explicit UnsettledCalls(Tracer* tracer) : tracer_(tracer) {}
  ~UnsettledCalls();
  UnsettledCalls(const UnsettledCalls&) = delete;
  UnsettledCalls& operator=(const UnsettledCalls&) = delete;

  // REQUIRES: the tracer is enabled.
  void add(const Event& event, std::vector<double> sent_bytes, std::shared_ptr<const CallTiming> timing);
  // Records the events of calls that have ended meanwhile; with `wait`, of all calls, once they have ended.
  void settle(bool wait);

 private:
  struct Call {
    Event event;
    std::vector<double> sent_bytes;
    std::shared_ptr<const CallTiming> timing;
  };
  Tracer* tracer_;
  std::deque<Call> calls_;
};

}  // namespace ranklab
