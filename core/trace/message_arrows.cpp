#include "core/trace/message_arrows.h"

#include <utility>

#include "core/trace/matching.h"

namespace ranklab {
namespace {

// Limits the number of ends whose partner is in no file (a rank that recorded nothing), which would accumulate over a
// long run.
constexpr size_t kMostWaiting = size_t{1} << 14;

}  // namespace

// The same for both ends, except for the last number, which says which end is waiting.
MessageArrows::Key MessageArrows::key_of(const RankTrace& trace, const Event& event) {
  const std::vector<int>* const group = group_of(trace, event.axis);
  const bool known = group != nullptr && event.peer >= 0 && static_cast<size_t>(event.peer) < group->size();
  const int64_t peer = known ? (*group)[static_cast<size_t>(event.peer)] : -1;
  const bool sends = event.verb == Verb::kSend;
  return {static_cast<int64_t>(event.axis),
          sends ? trace.global_rank : peer,
          sends ? peer : trace.global_rank,
          event.tag,
          event.sequence,
          sends ? 1 : 0};
}

std::vector<MessageArrows::Ends> MessageArrows::number(std::span<const RankTrace> traces,
                                                       std::span<const LaneMap> lanes) {
  std::vector<Ends> ends(traces.size());
  for (const MatchedCall& call : match_calls(traces)) {
    if (!call.message) continue;
    if (call.sides.size() == 2) {
      ends[call.sides[0].rank_index][call.sides[0].event_index] = {next_id_, true};
      ends[call.sides[1].rank_index][call.sides[1].event_index] = {next_id_, false};
      ++next_id_;
      continue;
    }
    if (call.sides.size() != 1) continue;
    const auto [rank, index] = call.sides[0];
    const Event& event = traces[rank].events[index];
    Key key = key_of(traces[rank], event);
    const bool start = std::exchange(key.back(), 1 - key.back()) == 1;
    const auto other = waiting_.find(key);
    if (other != waiting_.end()) {
      ends[rank][index] = {next_id_++, start, other->second};
      waiting_.erase(other);
      continue;
    }
    key.back() = start ? 1 : 0;
    if (waiting_.size() >= kMostWaiting) waiting_.clear();
    waiting_.insert_or_assign(key, ArrowPlace{traces[rank].global_rank, event, lanes[rank].lane_of_event[index]});
  }
  return ends;
}

}  // namespace ranklab
