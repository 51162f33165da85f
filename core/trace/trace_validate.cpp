#include "core/trace/trace_validate.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/trace/matching.h"

namespace ranklab {
namespace {

class CallChecker {
 public:
  explicit CallChecker(const TraceFile& file) : file_(file) {
    for (size_t i = 0; i < file.ranks.size(); ++i) index_of_rank_[file.ranks[i].global_rank] = i;
  }

  std::vector<std::string> run() {
    for (const RankTrace& trace : file_.ranks) check_rank(trace);
    for (const MatchedCall& call : match_calls(file_.ranks)) check_call(call);
    return std::move(problems_);
  }

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  void check_rank(const RankTrace& trace);
  void check_times(const RankTrace& trace, const Event& event);
  void check_call(const MatchedCall& call);
  void check_members(const MatchedCall& call, const std::string& where);
  void check_equal(const MatchedCall& call, const std::string& where);
  void check_parts(const MatchedCall& call, const std::string& where);
  bool recorded_all(int global_rank) const {
    const auto it = index_of_rank_.find(global_rank);
    return it != index_of_rank_.end() && file_.ranks[it->second].dropped == 0;
  }
  const Event& event_of(const EventRef& ref) const { return file_.ranks[ref.rank_index].events[ref.event_index]; }

  const TraceFile& file_;
  std::map<int, size_t> index_of_rank_;
  std::vector<std::string> problems_;
};

std::string describe(const RankTrace& trace, const Event& event) {
  if (event.kind != EventKind::kCollective && event.name < trace.names.size())
    return "rank " + std::to_string(trace.global_rank) + ", " + trace.names[event.name];
  return strprintf("rank %d, %s on %s #%lld", trace.global_rank, std::string(name(event.verb)).c_str(),
                   std::string(name(event.axis)).c_str(), static_cast<long long>(event.sequence));
}

void CallChecker::check_times(const RankTrace& trace, const Event& event) {
  if (event.wall_end_ns < event.wall_begin_ns)
    problem("time: " + describe(trace, event) + " ends before it begins (wall)");
  constexpr int64_t kLongestNs = int64_t{1} << 52;
  if (file_.clock == TraceClock::kVirtual && event.virtual_begin_ns < 0)
    problem("time: " + describe(trace, event) + " begins before the virtual clock");
  if (end_ns(event, file_.clock) - begin_ns(event, file_.clock) >= kLongestNs)
    problem("time: " + describe(trace, event) + " lasts 52 days or more");
  if (event.kind != EventKind::kCollective || file_.clock != TraceClock::kVirtual) return;
  static constexpr std::array<const char*, 5> kWords = {"posted", "matched", "begin", "first byte", "end"};
  const std::array<int64_t, 5> times = {event.virtual_posted_ns, event.virtual_matched_ns, event.virtual_begin_ns,
                                        event.virtual_first_byte_ns, event.virtual_end_ns};
  size_t last = times.size();
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] == kNoTime) continue;
    if (last < times.size() && times[i] < times[last]) {
      problem("time: " + describe(trace, event) + ": " + kWords[i] + " is before " + kWords[last]);
    }
    last = i;
  }
}

// Collectives of a group follow one another on the link, in sequence order.
void CallChecker::check_rank(const RankTrace& trace) {
  std::map<Axis, std::vector<const Event*>> by_axis;
  for (const Event& event : trace.events) {
    check_times(trace, event);
    if (event.kind != EventKind::kCollective || event.verb == Verb::kSend || event.verb == Verb::kRecv) continue;
    by_axis[event.axis].push_back(&event);
  }
  for (auto& [axis, events] : by_axis) {
    std::stable_sort(events.begin(), events.end(),
                     [](const Event* a, const Event* b) { return a->sequence < b->sequence; });
    for (size_t i = 1; i < events.size(); ++i) {
      if (events[i]->sequence == events[i - 1]->sequence) {
        problem("sequence: " + describe(trace, *events[i]) + " has the number of another call");
      } else if (file_.clock == TraceClock::kVirtual && events[i]->virtual_begin_ns < events[i - 1]->virtual_end_ns) {
        problem("time: " + describe(trace, *events[i]) + " begins before the call before it ended");
      }
    }
  }
}

void CallChecker::check_members(const MatchedCall& call, const std::string& where) {
  std::set<int> present;
  for (const EventRef& side : call.sides) present.insert(file_.ranks[side.rank_index].global_rank);
  std::vector<int> expected = call.group;
  if (call.message) {
    const Event& event = event_of(call.sides.front());
    const int own = file_.ranks[call.sides.front().rank_index].global_rank;
    expected = {own};
    if (event.peer >= 0 && static_cast<size_t>(event.peer) < call.group.size()) {
      expected.push_back(call.group[static_cast<size_t>(event.peer)]);
    }
  }
  for (const int rank : expected) {
    if (!present.contains(rank) && recorded_all(rank)) {
      problem((call.message ? "message: " : "collective: ") + where + " is missing on rank " + std::to_string(rank));
    }
  }
}

void CallChecker::check_equal(const MatchedCall& call, const std::string& where) {
  const Event& first = event_of(call.sides.front());
  for (const EventRef& side : call.sides) {
    const Event& event = event_of(side);
    const std::string rank = "rank " + std::to_string(file_.ranks[side.rank_index].global_rank);
    if (!call.message && event.verb != first.verb) {
      problem("collective: " + where + " is " + std::string(name(event.verb)) + " on " + rank);
    } else if (event.purpose != first.purpose) {
      problem("collective: " + where + " is for " + std::string(name(event.purpose)) + " on " + rank);
    } else if (event.dtype != first.dtype) {
      problem("collective: " + where + " has dtype " + std::string(name(event.dtype)) + " on " + rank);
    } else if (event.verb != Verb::kAllToAll && event.logical_bytes != first.logical_bytes) {
      problem("collective: " + where + " has a different number of bytes on " + rank);
    } else if (file_.clock == TraceClock::kVirtual &&
               std::tie(event.virtual_matched_ns, event.virtual_begin_ns, event.virtual_end_ns) !=
                   std::tie(first.virtual_matched_ns, first.virtual_begin_ns, first.virtual_end_ns)) {
      problem("collective: " + where + " has different times on " + rank);
    }
  }
}

// Checks the parts of an all_to_all: one per member, none negative.
void CallChecker::check_parts(const MatchedCall& call, const std::string& where) {
  for (const EventRef& side : call.sides) {
    const Event& event = event_of(side);
    const RankTrace& trace = file_.ranks[side.rank_index];
    if (event.verb != Verb::kAllToAll || event.array == 0) continue;
    const std::vector<double>& parts = trace.arrays[event.array - 1];
    const std::string rank = "rank " + std::to_string(trace.global_rank);
    if (parts.size() != call.group.size()) {
      problem("collective: " + where + " has " + std::to_string(parts.size()) + " parts on " + rank + ", want " +
              std::to_string(call.group.size()));
    } else if (!std::all_of(parts.begin(), parts.end(), [](double part) { return part >= 0; })) {
      problem("collective: " + where + " has a part below 0 on " + rank);
    }
  }
}

void CallChecker::check_call(const MatchedCall& call) {
  if (call.group.empty()) return;  // the group was not recorded: nothing to compare with
  const EventRef& side = call.sides.front();
  const std::string where = describe(file_.ranks[side.rank_index], event_of(side));
  check_members(call, where);
  check_equal(call, where);
  check_parts(call, where);
}

}  // namespace

std::vector<std::string> validate_calls(const TraceFile& file) { return CallChecker(file).run(); }

std::vector<std::string> validate_trace_file(const std::string& path, size_t limit) {
  std::vector<std::string> problems = validate_chrome_events(path);
  const bool readable = std::none_of(problems.begin(), problems.end(),
                                     [](const std::string& text) { return text.starts_with("schema:"); });
  if (readable) {
    const std::vector<std::string> more = validate_calls(read_chrome_trace(path));
    problems.insert(problems.end(), more.begin(), more.end());
  }
  if (problems.size() > limit) {
    const size_t left = problems.size() - limit;
    problems.resize(limit);
    problems.push_back("... and " + std::to_string(left) + " more");
  }
  return problems;
}

}  // namespace ranklab
