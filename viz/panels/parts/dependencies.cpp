#include "viz/panels/parts/dependencies.h"

#include <algorithm>

#include "viz/model/tables/comm_table.h"

namespace ranklab::viz {
namespace {

// The compute span of a rank and microbatch that ends last before `time`, or the first one that begins after it.
std::optional<EventRef> neighbour(const TraceStore& store, size_t rank, const Event& like, int64_t time, bool before) {
  std::optional<EventRef> best;
  const std::vector<Event>& events = store.trace(rank).events;
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.kind != EventKind::kCompute || event.step != like.step || event.microbatch != like.microbatch) continue;
    const EventRef ref{rank, i};
    const bool fits = before ? store.end_ns(ref) <= time : store.begin_ns(ref) >= time;
    if (!fits) continue;
    const bool better = !best || (before ? store.end_ns(ref) > store.end_ns(*best)  //
                                         : store.begin_ns(ref) < store.begin_ns(*best));
    if (better) best = ref;
  }
  return best;
}

struct Message {
  EventRef send, recv;
};

std::vector<Message> messages_of(const TraceStore& store, const std::vector<CommCall>& calls, const Event& chosen) {
  std::vector<Message> found;
  for (const CommCall& call : calls) {
    if (!call.message() || call.sides.size() != 2) continue;
    const Event& send = store.event(call.sides[0].event);
    if (send.microbatch == chosen.microbatch && send.step == chosen.step)
      found.push_back({call.sides[0].event, call.sides[1].event});
  }
  return found;
}

// The message that arrived last before an action, and the first one sent after it, unless another action of the same
// microbatch on this rank lies in between.
void of_action(const TraceStore& store, const std::vector<CommCall>& calls, EventRef chosen,
               std::vector<Dependency>& out) {
  const Event& action = store.event(chosen);
  for (const Message& message : messages_of(store, calls, action)) {
    if (message.recv.rank_index == chosen.rank_index) {
      const int64_t arrived = store.end_ns(message.recv);
      if (neighbour(store, chosen.rank_index, action, arrived, false) != chosen) continue;
      const auto sender = neighbour(store, message.send.rank_index, action, store.begin_ns(message.send), true);
      if (sender) out.push_back({*sender, chosen, true});
    }
    if (message.send.rank_index == chosen.rank_index) {
      const int64_t posted = store.begin_ns(message.send);
      if (neighbour(store, chosen.rank_index, action, posted, true) != chosen) continue;
      const auto receiver = neighbour(store, message.recv.rank_index, action, store.end_ns(message.recv), false);
      if (receiver) out.push_back({chosen, *receiver, false});
    }
  }
}

void of_call(const std::vector<CommCall>& calls, EventRef chosen, std::vector<Dependency>& out) {
  for (const CommCall& call : calls) {
    const auto is_chosen = [chosen](const CommSide& side) { return side.event == chosen; };
    if (std::none_of(call.sides.begin(), call.sides.end(), is_chosen)) continue;
    const auto last = call.message() ? call.sides.begin()
                                     : std::find_if(call.sides.begin(), call.sides.end(), [&](const CommSide& side) {
                                         return side.global_rank == call.last_rank;
                                       });
    if (last == call.sides.end()) return;
    for (const CommSide& side : call.sides) {
      if (!(side.event == last->event)) out.push_back({last->event, side.event, side.event == chosen});
    }
    return;
  }
}

}  // namespace

std::vector<Dependency> dependencies(const TraceStore& store, EventRef chosen) {
  std::vector<Dependency> out;
  const Event& event = store.event(chosen);
  const bool action = event.kind == EventKind::kCompute && event.microbatch >= 0;
  if (!action && event.kind != EventKind::kCollective) return out;
  const std::vector<CommCall> calls = comm_calls(store, store.step_window(event.step).value_or(store.whole()));
  if (action) {
    of_action(store, calls, chosen, out);
  } else {
    of_call(calls, chosen, out);
  }
  return out;
}

}  // namespace ranklab::viz
