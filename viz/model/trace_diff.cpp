#include "viz/model/trace_diff.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "core/base/text.h"
#include "viz/model/tables/memory_table.h"

namespace ranklab::viz {
namespace {

double share(double delta, double of) {
  if (delta == 0) return 0;
  return of != 0 ? delta / std::abs(of) : std::copysign(std::numeric_limits<double>::infinity(), delta);
}

struct StepPair {
  const StepRange &a, &b;
};

bool have_numbers_in_common(const TraceStore& a, const TraceStore& b) {
  return std::ranges::any_of(a.steps(), [&](const StepRange& step) { return b.step_window(step.step).has_value(); });
}

// The step of `b` with which the i-th of `a` is compared: the one with the same number, or, if no number is in both
// traces, the one at the same position. Null if there is none.
const StepRange* counterpart(const TraceStore& a, size_t i, const TraceStore& b, bool by_number) {
  const std::span<const StepRange> others = b.steps();
  if (!by_number) return i < others.size() ? &others[i] : nullptr;
  const auto other = std::ranges::lower_bound(others, a.steps()[i].step, {}, &StepRange::step);
  return other != others.end() && other->step == a.steps()[i].step ? &*other : nullptr;
}

std::vector<StepPair> pairs_of_steps(const TraceStore& a, const TraceStore& b) {
  const bool by_number = have_numbers_in_common(a, b);
  std::vector<StepPair> pairs;
  for (size_t i = 0; i < a.steps().size(); ++i)
    if (const StepRange* const other = counterpart(a, i, b, by_number)) pairs.push_back({a.steps()[i], *other});
  return pairs;
}

// Some steps of a trace, or the whole trace if there are none.
class Side {
 public:
  Side(const TraceStore& store, const std::vector<StepPair>& pairs, const StepRange& (*of)(const StepPair&))
      : store_(store), whole_(pairs.empty()) {
    for (const StepPair& pair : pairs) steps_.insert(of(pair).step);
  }

  bool has(const Event& event) const { return whole_ || steps_.contains(event.step); }

  TimeRange range() const {
    if (whole_) return store_.range();
    std::optional<TimeRange> range;
    for (const StepRange& step : store_.steps()) {
      if (!steps_.contains(step.step)) continue;
      if (!range) range = step.range;
      *range = {std::min(range->begin_ns, step.range.begin_ns), std::max(range->end_ns, step.range.end_ns)};
    }
    return range.value_or(store_.range());
  }

  // Adds up counts and durations, multiplied by `share`.
  void total(std::map<std::string, OpDiff>& ops, OpSide OpDiff::*side, double share) const {
    std::map<std::string, OpSide> sums;
    for (const RankTrace& trace : store_.traces()) {
      for (const Event& event : trace.events) {
        if (!is_slice(event) || !has(event)) continue;
        OpSide& to = sums[op_name(trace, event)];
        ++to.count;
        to.total_ns +=
            static_cast<double>(std::max<int64_t>(0, end_ns(event, store_.clock()) - begin_ns(event, store_.clock())));
      }
    }
    for (const auto& [name, sum] : sums) ops[name].*side = {sum.count * share, sum.total_ns * share};
  }

  std::map<int, double> peaks() const {
    std::map<int, double> out;
    for (const RankMemory& rank : memory_table(store_, store_.whole())) {
      double peak = 0;
      for (const MemorySample& sample : rank.samples) {
        if (whole_ || steps_.contains(sample.step)) peak = std::max(peak, sample.total());
      }
      if (!rank.samples.empty()) out[rank.global_rank] = peak;
    }
    return out;
  }

 private:
  const TraceStore& store_;
  bool whole_;
  std::set<int> steps_;
};

std::string steps_compared(const std::vector<StepPair>& pairs) {
  if (pairs.empty()) return ", so the whole traces are compared";
  const bool numbers = pairs.front().a.step == pairs.front().b.step;
  if (pairs.size() == 1) return numbers ? ": the one that both have is compared" : ": the first of each is compared";
  return strprintf(numbers ? ": the %zu that both have are compared" : ": the first %zu of each are compared",
                   pairs.size());
}

void note_differences(const TraceStore& a, const TraceStore& b, const std::vector<StepPair>& pairs,
                      std::vector<std::string>& notes) {
  const auto note = [&](const std::string& what, const std::string& x, const std::string& y, const std::string& so) {
    if (x != y) notes.push_back(what + ": " + x + " and " + y + so);
  };
  note("ranks", std::to_string(a.ranks().size()), std::to_string(b.ranks().size()),
       ": counts and times are those of a rank on average, memory is that of the fullest rank");
  note("clock", a.clock() == TraceClock::kVirtual ? "virtual" : "wall",
       b.clock() == TraceClock::kVirtual ? "virtual" : "wall", "");
  note("steps", std::to_string(a.steps().size()), std::to_string(b.steps().size()), steps_compared(pairs));
  note("broken", a.warning().empty() ? "no" : "yes", b.warning().empty() ? "no" : "yes", "");
}

std::string step_name(int a, int b) {
  return "step " + std::to_string(a) + (a == b ? "" : " and " + std::to_string(b));
}

std::optional<double> fullest(const std::map<int, double>& peaks) {
  std::optional<double> out;
  for (const auto& [rank, peak] : peaks) out = std::max(out.value_or(peak), peak);
  return out;
}

}  // namespace

double OpDiff::delta_share() const { return share(b.total_ns - a.total_ns, a.total_ns); }

double ValueDiff::delta_share() const { return share(delta(), a); }

bool TraceDiff::same() const {
  const auto equal_op = [](const OpDiff& op) { return op.delta_ns() == 0 && op.a.count == op.b.count; };
  const auto equal = [](const ValueDiff& value) { return value.delta() == 0; };
  return notes.empty() && std::all_of(ops.begin(), ops.end(), equal_op) &&
         std::all_of(step_ns.begin(), step_ns.end(), equal) && std::all_of(memory.begin(), memory.end(), equal) &&
         equal(makespan);
}

double TraceDiff::worst_share() const {
  double worst = std::abs(makespan.delta_share());
  for (const ValueDiff& value : step_ns) worst = std::max(worst, std::abs(value.delta_share()));
  for (const ValueDiff& value : memory) worst = std::max(worst, std::abs(value.delta_share()));
  return worst;
}

TraceDiff diff_traces(const TraceStore& a, const TraceStore& b) {
  TraceDiff diff;
  const std::vector<StepPair> pairs = pairs_of_steps(a, b);
  note_differences(a, b, pairs, diff.notes);
  diff.steps = static_cast<int>(pairs.size());
  const Side first(a, pairs, [](const StepPair& pair) -> const StepRange& { return pair.a; });
  const Side second(b, pairs, [](const StepPair& pair) -> const StepRange& { return pair.b; });
  std::map<std::string, OpDiff> ops;
  diff.of_a_rank = a.ranks().size() != b.ranks().size();
  const auto share_of_a_rank = [&](const TraceStore& store) {
    return diff.of_a_rank ? 1 / static_cast<double>(std::max<size_t>(store.ranks().size(), 1)) : 1.0;
  };
  first.total(ops, &OpDiff::a, share_of_a_rank(a));
  second.total(ops, &OpDiff::b, share_of_a_rank(b));
  for (auto& [name, op] : ops) {
    op.name = name;
    diff.ops.push_back(std::move(op));
  }
  std::stable_sort(diff.ops.begin(), diff.ops.end(),
                   [](const OpDiff& x, const OpDiff& y) { return std::abs(x.delta_ns()) > std::abs(y.delta_ns()); });
  for (const StepPair& pair : pairs) {
    diff.step_ns.push_back({step_name(pair.a.step, pair.b.step), static_cast<double>(pair.a.range.length_ns()),
                            static_cast<double>(pair.b.range.length_ns())});
  }
  const std::map<int, double> own = first.peaks(), other = second.peaks();
  if (diff.of_a_rank) {
    if (const auto x = fullest(own), y = fullest(other); x && y)
      diff.memory.push_back({"peak memory of the fullest rank", *x, *y});
  } else {
    for (const auto& [rank, peak] : own) {
      if (const auto found = other.find(rank); found != other.end())
        diff.memory.push_back({"peak memory r" + std::to_string(rank), peak, found->second});
    }
  }
  diff.makespan = {"makespan", static_cast<double>(first.range().length_ns()),
                   static_cast<double>(second.range().length_ns())};
  return diff;
}

int64_t time_between(const TraceStore& a, const TraceStore& b, TimeRange seen) {
  const int64_t whole = b.range().begin_ns - a.range().begin_ns;
  if (seen.begin_ns <= a.range().begin_ns) return whole;
  const int step = a.step_at(seen.begin_ns + seen.length_ns() / 2);
  const auto at = std::ranges::lower_bound(a.steps(), step, {}, &StepRange::step);
  if (at == a.steps().end() || at->step != step) return whole;
  const StepRange* const other =
      counterpart(a, static_cast<size_t>(at - a.steps().begin()), b, have_numbers_in_common(a, b));
  return other == nullptr ? whole : other->range.begin_ns - at->range.begin_ns;
}

}  // namespace ranklab::viz
