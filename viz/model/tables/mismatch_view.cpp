#include "viz/model/tables/mismatch_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"

namespace ranklab::viz {
namespace {

using Cell = MismatchView::Cell;
using Calls = std::map<int64_t, Cell>;  // by sequence number

std::string cell_words(const Cell& cell) {
  return std::string(name(cell.verb)) + ", " + std::string(name(cell.dtype)) + ", " +
         human_bytes(static_cast<double>(cell.logical_bytes));
}

struct Group {
  Axis axis = Axis::kWorld;
  std::vector<int> members;
  std::map<int, Calls> calls;  // of the members that are in the trace
};

std::vector<Group> collect(const TraceStore& store) {
  std::map<std::pair<Axis, std::vector<int>>, Group> groups;
  for (size_t r = 0; r < store.traces().size(); ++r) {
    const RankTrace& trace = store.trace(r);
    std::map<Axis, Group*> own;
    for (const TraceGroup& group : trace.groups) {
      Group& found = groups[{group.axis, group.global_ranks}];
      found.axis = group.axis;
      found.members = group.global_ranks;
      found.calls.try_emplace(trace.global_rank);
      own[group.axis] = &found;
    }
    for (size_t e = 0; e < trace.events.size(); ++e) {
      const Event& event = trace.events[e];
      const bool message = event.verb == Verb::kSend || event.verb == Verb::kRecv;
      const auto group = own.find(event.axis);
      if (event.kind != EventKind::kCollective || message || group == own.end()) continue;
      // Members may send different amounts in an all_to_all.
      const int64_t bytes = event.verb == Verb::kAllToAll ? 0 : event.logical_bytes;
      group->second->calls[trace.global_rank].try_emplace(event.sequence,
                                                          Cell{true, event.verb, event.dtype, bytes, {r, e}});
    }
  }
  std::vector<Group> out;
  for (auto& [key, group] : groups) {
    const bool any =
        std::any_of(group.calls.begin(), group.calls.end(), [](const auto& c) { return !c.second.empty(); });
    if (any && group.calls.size() > 1) out.push_back(std::move(group));
  }
  return out;
}

Cell cell_at(const Calls& calls, int64_t sequence) {
  const auto found = calls.find(sequence);
  return found == calls.end() ? Cell{} : found->second;
}

// The call that most members made.
Cell usual(const Group& group, int64_t sequence) {
  Cell best;
  int most = 0;
  for (const auto& [rank, calls] : group.calls) {
    const Cell cell = cell_at(calls, sequence);
    int same = 0;
    for (const auto& [other, theirs] : group.calls) same += cell_at(theirs, sequence) == cell ? 1 : 0;
    if (cell.made)
      same = 2 * same + 1;  // in a tie, members that made a call are considered right
    else
      same = 2 * same;
    if (same > most) {
      most = same;
      best = cell;
    }
  }
  return best;
}

bool differ_at(const Group& group, int64_t sequence) {
  const Cell first = cell_at(group.calls.begin()->second, sequence);
  return std::any_of(group.calls.begin(), group.calls.end(),
                     [&](const auto& member) { return !(cell_at(member.second, sequence) == first); });
}

void judge(const Group& group, MismatchView& view) {
  const Cell expected = usual(group, view.divergence);
  for (const auto& [rank, calls] : group.calls) {
    if (!(cell_at(calls, view.divergence) == expected)) view.odd_ranks.push_back(rank);
  }
  const std::string who =
      (view.odd_ranks.size() == 1 ? "rank " : "ranks ") + join(std::span<const int>(view.odd_ranks), ", ");
  const std::string call = "call " + std::to_string(view.divergence) + " of " + std::string(name(group.axis));
  if (!expected.made) {
    view.verdict = "only " + who + " made " + call;
    return;
  }
  const Cell odd = cell_at(group.calls.at(view.odd_ranks.front()), view.divergence);
  view.verdict = odd.made
                     ? who + " made " + cell_words(odd) + " where others made " + cell_words(expected) + ": " + call
                     : who + " did not make " + call + " (" + cell_words(expected) + ")";
}

MismatchView view_of(const Group& group, int width) {
  MismatchView view;
  view.axis = group.axis;
  view.group = group.members;
  std::set<int64_t> sequences;
  for (const auto& [rank, calls] : group.calls) {
    for (const auto& [sequence, cell] : calls) sequences.insert(sequence);
  }
  for (const int64_t sequence : sequences) {
    if (!differ_at(group, sequence)) continue;
    view.divergence = sequence;
    break;
  }
  if (view.divergence >= 0) judge(group, view);
  const int64_t last = *sequences.rbegin();
  const int64_t centre = view.divergence >= 0 ? view.divergence + width / 2 : last;
  const int64_t end = std::min(last, centre);
  view.first_sequence = std::max(*sequences.begin(), end - width + 1);
  for (const int member : view.group) {
    const auto found = group.calls.find(member);
    std::vector<Cell>& row = view.cells.emplace_back(static_cast<size_t>(end - view.first_sequence + 1));
    if (found == group.calls.end()) continue;
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = cell_at(found->second, view.first_sequence + static_cast<int64_t>(i));
  }
  return view;
}

}  // namespace

std::vector<MismatchView> mismatch_views(const TraceStore& store, int width) {
  std::vector<MismatchView> views;
  for (const Group& group : collect(store)) views.push_back(view_of(group, std::max(width, 1)));
  std::stable_sort(views.begin(), views.end(), [](const MismatchView& a, const MismatchView& b) {
    return (a.divergence >= 0) > (b.divergence >= 0);
  });
  return views;
}

}  // namespace ranklab::viz
