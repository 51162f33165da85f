#include "core/pipeline/schedule_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/trace/tracer.h"

namespace ranklab {
namespace {

int64_t ns_of(double units) { return std::llround(units * static_cast<double>(kScheduleUnitNs)); }

// Where an output or a gradient was computed.
struct Made {
  int rank = -1;
  double end = 0;
};

class Converter {
 public:
  Converter(const Schedule& schedule, const PipelineTimeline& line, double c)
      : schedule_(schedule), line_(line), c_(c) {
    for (int r = 0; r < schedule.num_ranks(); ++r) {
      members_.push_back(r);
      for (const TimedAction& timed : line.ranks[static_cast<size_t>(r)]) note(r, timed);
    }
  }

  std::vector<RankTrace> convert() {
    for (int r = 0; r < schedule_.num_ranks(); ++r)
      tracers_.emplace_back(r, "pp" + std::to_string(r)).set_group(Axis::kPp, members_);
    recorded_.resize(tracers_.size());
    for (int r = 0; r < schedule_.num_ranks(); ++r) rank(r);
    std::vector<RankTrace> traces;
    for (size_t r = 0; r < tracers_.size(); ++r) traces.push_back(take(r));
    return traces;
  }

 private:
  using Cell = std::pair<int, int>;  // stage, microbatch

  void note(int rank, const TimedAction& timed) {
    const Action& a = timed.action;
    if (a.has_forward()) outputs_[{a.stage, a.microbatch}] = {rank, timed.end};
    if (a.has_input_grad()) gradients_[{a.backward_stage(), a.backward_microbatch()}] = {rank, timed.end};
  }

  // Recorded as by a running rank: a receive when the rank continues, an action when it ends, a send when it is posted.
  struct Recorded {
    int64_t time_ns = 0;
    const char* name = "";
    Event event;
  };
  void record(int rank, int64_t time_ns, const char* name, const Event& event) {
    recorded_[static_cast<size_t>(rank)].push_back({time_ns, name, event});
  }
  RankTrace take(size_t r) {
    std::stable_sort(recorded_[r].begin(), recorded_[r].end(),
                     [](const Recorded& a, const Recorded& b) { return a.time_ns < b.time_ns; });
    for (Recorded& one : recorded_[r]) {
      one.event.name = tracers_[r].intern(one.name);
      tracers_[r].record(one.event);
    }
    return tracers_[r].take();
  }

  struct Message {
    Made from;
    int stage = 0;
    int microbatch = 0;
    int direction = 0;  // 0: an output, 1: a gradient
  };
  // Inputs from other ranks, in order of arrival.
  std::vector<Message> inputs(const Action& a, int rank) const {
    std::vector<Message> list;
    if (a.has_forward() && !schedule_.is_first(a.stage))
      list.push_back({outputs_.at({a.stage - 1, a.microbatch}), a.stage, a.microbatch, 0});
    const int stage = a.backward_stage(), microbatch = a.backward_microbatch();
    if (a.has_input_grad() && !schedule_.is_last(stage))
      list.push_back({gradients_.at({stage + 1, microbatch}), stage, microbatch, 1});
    std::erase_if(list, [&](const Message& message) { return message.from.rank == rank; });
    std::stable_sort(list.begin(), list.end(),
                     [](const Message& x, const Message& y) { return x.from.end < y.from.end; });
    return list;
  }

  void rank(int r) {
    int64_t free = 0;
    for (const TimedAction& timed : line_.ranks[static_cast<size_t>(r)]) {
      for (const Message& message : inputs(timed.action, r)) free = std::max(free, receive(r, message, free));
      Event event;
      event.kind = EventKind::kCompute;
      event.step = 0;
      event.stage = timed.action.stage;
      event.microbatch = timed.action.microbatch;
      event.virtual_begin_ns = ns_of(timed.begin);
      event.virtual_end_ns = free = ns_of(timed.end);
      record(r, event.virtual_end_ns, letters(timed.action.kind), event);
    }
  }

  // Records both ends of a message for which rank `to`, which is idle since `free`, waits. RETURNS: its time of
  // arrival.
  int64_t receive(int to, const Message& message, int64_t free) {
    Event event;
    event.kind = EventKind::kCollective;
    event.axis = Axis::kPp;
    event.step = 0;
    event.stage = message.stage;
    event.microbatch = message.microbatch;
    // Each message has its own tag, because the simulator's links carry any number of messages at once.
    event.tag = 2 * (message.stage * schedule_.num_microbatches + message.microbatch) + message.direction;
    event.sequence = 0;
    event.virtual_begin_ns = event.virtual_matched_ns = ns_of(message.from.end);
    event.virtual_end_ns = event.virtual_first_byte_ns = ns_of(message.from.end + c_);
    event.verb = Verb::kSend;
    event.peer = to;
    event.virtual_posted_ns = event.virtual_begin_ns;
    record(message.from.rank, event.virtual_posted_ns, "send", event);
    event.verb = Verb::kRecv;
    event.peer = message.from.rank;
    event.virtual_posted_ns = 0;  // receives are posted early, so no sender ever waits for one
    const int64_t gap = std::max<int64_t>(0, event.virtual_end_ns - free);
    event.virtual_exposed_ns = std::min(gap, event.virtual_end_ns - event.virtual_begin_ns);
    event.virtual_peer_wait_ns = gap - event.virtual_exposed_ns;
    record(to, std::max(free, event.virtual_end_ns), "recv", event);
    return event.virtual_end_ns;
  }

  const Schedule& schedule_;
  const PipelineTimeline& line_;
  double c_;
  std::vector<int> members_;
  std::vector<Tracer> tracers_;
  std::vector<std::vector<Recorded>> recorded_;  // [rank]
  std::map<Cell, Made> outputs_;
  std::map<Cell, Made> gradients_;
};

}  // namespace

std::vector<RankTrace> schedule_trace(const Schedule& schedule, const PipelineTimeline& line, double c) {
  return Converter(schedule, line, c).convert();
}

}  // namespace ranklab
