#include "viz/model/tables/comm_table.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

CommSide side_of(const TraceStore& store, EventRef ref) {
  const Event& event = store.event(ref);
  CommSide side;
  side.event = ref;
  side.global_rank = store.rank(ref.rank_index).global_rank;
  const bool virtual_time = store.clock() == TraceClock::kVirtual;
  side.posted_ns = virtual_time ? event.virtual_posted_ns : event.wall_begin_ns;
  side.matched_ns = virtual_time ? event.virtual_matched_ns : event.wall_matched_ns;
  side.first_byte_ns = virtual_time ? event.virtual_first_byte_ns : kNoTime;
  side.done_ns = store.end_ns(ref);
  if (side.posted_ns == kNoTime) side.posted_ns = store.begin_ns(ref);
  if (virtual_time) {
    side.exposed_ns = event.virtual_exposed_ns;
    side.peer_wait_ns = event.virtual_peer_wait_ns;
  }
  return side;
}

void sum_sides(const TraceStore& store, CommCall& call) {
  int64_t first = call.sides.front().posted_ns, last = first;
  call.last_rank = call.sides.front().global_rank;
  call.begin_ns = -2 * kTimeLimit;
  call.end_ns = -2 * kTimeLimit;
  for (const CommSide& side : call.sides) {
    const Event& event = store.event(side.event);
    first = std::min(first, side.posted_ns);
    if (side.posted_ns > last) {
      last = side.posted_ns;
      call.last_rank = side.global_rank;
    }
    // On the wall clock an event begins when it is posted, and bytes are sent only after the match.
    const bool from_match = store.clock() == TraceClock::kWall && side.matched_ns != kNoTime;
    call.begin_ns = std::max(call.begin_ns, from_match ? side.matched_ns : store.begin_ns(side.event));
    call.end_ns = std::max(call.end_ns, side.done_ns);
    call.logical_bytes = std::max(call.logical_bytes, event.logical_bytes);
    if (event.verb != Verb::kRecv) call.algorithm_bytes += event.algorithm_bytes;
    call.wire_bytes += event.wire_bytes;
    call.exposed_ns = std::max(call.exposed_ns, side.exposed_ns);
  }
  call.skew_ns = last - first;
}

void set_members(const TraceStore& store, const MatchedCall& matched, CommCall& call) {
  call.group = matched.group;
  if (matched.message) {
    const Event& event = store.event(matched.sides.front());
    const int self = store.rank(matched.sides.front().rank_index).global_rank;
    const bool known = event.peer >= 0 && static_cast<size_t>(event.peer) < matched.group.size();
    const int peer = known ? matched.group[static_cast<size_t>(event.peer)] : -1;
    call.group = event.verb == Verb::kSend ? std::vector<int>{self, peer} : std::vector<int>{peer, self};
  } else {
    std::sort(call.sides.begin(), call.sides.end(),
              [](const CommSide& a, const CommSide& b) { return a.global_rank < b.global_rank; });
  }
  for (const int member : call.group) {
    const bool made = std::any_of(call.sides.begin(), call.sides.end(),
                                  [&](const CommSide& side) { return side.global_rank == member; });
    if (!made && store.index_of_rank(member)) call.missing.push_back(member);
  }
}

double number(const CommCall& call, CommColumn column) {
  switch (column) {
    case CommColumn::kBegin:
      return static_cast<double>(call.begin_ns);
    case CommColumn::kStep:
      return call.step;
    case CommColumn::kAxis:
      return static_cast<double>(call.axis);
    case CommColumn::kSequence:
      return static_cast<double>(call.sequence);
    case CommColumn::kVerb:
      return static_cast<double>(call.verb);
    case CommColumn::kPurpose:
      return static_cast<double>(call.purpose);
    case CommColumn::kDtype:
      return static_cast<double>(call.dtype);
    case CommColumn::kElements:
      return static_cast<double>(call.elements);
    case CommColumn::kLogical:
      return static_cast<double>(call.logical_bytes);
    case CommColumn::kAlgorithm:
      return static_cast<double>(call.algorithm_bytes);
    case CommColumn::kWire:
      return static_cast<double>(call.wire_bytes);
    case CommColumn::kPosted:
      return static_cast<double>(call.sides.front().posted_ns);
    case CommColumn::kDuration:
      return static_cast<double>(call.end_ns - call.begin_ns);
    case CommColumn::kSkew:
      return static_cast<double>(call.skew_ns);
    case CommColumn::kAlgbw:
      return call.algbw_gb_per_s;
    case CommColumn::kBusbw:
      return call.busbw_gb_per_s;
    case CommColumn::kExposed:
      return static_cast<double>(call.exposed_ns);
    case CommColumn::kCount:
      break;
  }
  return 0;
}

}  // namespace

double busbw_factor(Verb verb, int group_size) {
  const double n = std::max(group_size, 1);
  switch (verb) {
    case Verb::kAllReduce:
      return 2 * (n - 1) / n;
    case Verb::kReduceScatter:
    case Verb::kAllGather:
    case Verb::kAllToAll:
      return (n - 1) / n;
    default:
      return 1;
  }
}

std::vector<CommCall> comm_calls(const TraceStore& store, const Window& window) {
  std::vector<CommCall> calls;
  for (const MatchedCall& matched : store.calls().calls) {
    const bool wanted = std::any_of(matched.sides.begin(), matched.sides.end(),
                                    [&](EventRef side) { return window.has(store.event(side), store.clock()); });
    if (!wanted) continue;
    CommCall call;
    const Event& first = store.event(matched.sides.front());
    call.axis = first.axis;
    call.verb = first.verb;
    call.purpose = first.purpose;
    call.dtype = first.dtype;
    call.sequence = matched.sequence;
    call.step = first.step;
    for (const EventRef side : matched.sides) call.sides.push_back(side_of(store, side));
    sum_sides(store, call);
    set_members(store, matched, call);
    call.elements = call.logical_bytes / std::max<int64_t>(1, size_bytes(call.dtype));
    if (call.end_ns > call.begin_ns)
      call.algbw_gb_per_s = static_cast<double>(call.logical_bytes) / static_cast<double>(call.end_ns - call.begin_ns);
    call.busbw_gb_per_s = call.algbw_gb_per_s * busbw_factor(call.verb, static_cast<int>(call.group.size()));
    calls.push_back(std::move(call));
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const CommCall& a, const CommCall& b) { return a.begin_ns < b.begin_ns; });
  return calls;
}

std::string_view name(CommColumn column) {
  constexpr std::array<std::string_view, static_cast<size_t>(CommColumn::kCount)> kNames = {
      "begin",     "step", "group",  "seq",      "op",   "for",   "dtype", "numel",  "logical",
      "algorithm", "wire", "posted", "duration", "skew", "algbw", "busbw", "exposed"};
  return kNames[static_cast<size_t>(column)];
}

std::string cell_text(const TraceStore& store, const CommCall& call, CommColumn column) {
  switch (column) {
    case CommColumn::kAxis: {
      const std::string ranks = join(std::span<const int>(call.group), call.message() ? " > " : " ");
      return std::string(ranklab::name(call.axis)) + " " + ranks;
    }
    case CommColumn::kStep:
      return call.step < 0 ? "" : std::to_string(call.step);
    case CommColumn::kVerb:
      return std::string(ranklab::name(call.verb));
    case CommColumn::kPurpose:
      return call.purpose == Purpose::kOther ? "" : std::string(ranklab::name(call.purpose));
    case CommColumn::kDtype:
      return std::string(ranklab::name(call.dtype));
    case CommColumn::kSequence:
    case CommColumn::kElements:
      return strprintf("%.0f", number(call, column));
    case CommColumn::kLogical:
    case CommColumn::kAlgorithm:
    case CommColumn::kWire:
      return human_bytes(number(call, column));
    case CommColumn::kAlgbw:
    case CommColumn::kBusbw:
      return strprintf("%.2f GB/s", number(call, column));
    default:
      return format_time(store, static_cast<int64_t>(number(call, column)));
  }
}

void sort_calls(std::span<const CommCall> calls, CommColumn column, bool ascending, std::vector<uint32_t>& order) {
  order.resize(calls.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const double x = number(calls[a], column), y = number(calls[b], column);
    return ascending ? x < y : y < x;
  });
}

}  // namespace ranklab::viz
