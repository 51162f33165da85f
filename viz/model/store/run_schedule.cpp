#include "viz/model/store/run_schedule.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "core/pipeline/schedules.h"

namespace ranklab::viz {

namespace {

// The steps that a rank has recorded completely. In a partial trace this excludes the last step, if there are others,
// and every step in which the viewer lost events.
std::set<int> whole_steps(const TraceStore& store, size_t rank_index) {
  std::set<int> steps;
  for (const Event& event : store.trace(rank_index).events) steps.insert(event.step);
  steps.erase(-1);
  if (store.partial() && steps.size() > 1) steps.erase(std::prev(steps.end()));
  for (const TimeRange& lost : store.lost(rank_index)) {
    std::erase_if(steps, [&](int step) {
      const auto window = store.step_window(step);
      return window && window->range.begin_ns < lost.end_ns && window->range.end_ns > lost.begin_ns;
    });
  }
  return steps;
}

// How many microbatches pass the first stage of a rank before its next one begins.
class FirstGroup {
 public:
  void forward(int stage) {
    if (count_ == 0) stage_ = stage;
    over_ = over_ || stage != stage_;
    if (!over_) ++count_;
  }
  int stage() const { return stage_; }
  int count() const { return count_; }

 private:
  int stage_ = -1, count_ = 0;
  bool over_ = false;
};

// Of a run whose ranks hold stages in a loop, as interleaved 1F1B does; else 0.
int group_size(const FirstGroup& of_stage_0, const std::set<int>& its_stages, const ScheduleRequest& request) {
  if (request.num_chunks == 1 || !its_stages.contains(request.num_ranks)) return 0;
  const int count = of_stage_0.count();
  return is_interleaved_group(count, request.num_ranks, request.num_microbatches) ? count : 0;
}

}  // namespace

std::optional<RunSchedule> run_schedule(const TraceStore& store) {
  std::map<std::string, int64_t> ns;  // duration by action
  std::set<int> stages, microbatches;
  std::set<std::set<int>> ranks;  // which stages a rank has: one set for each pipeline rank
  int64_t message_ns = 0, messages = 0, rank_steps = 0;
  FirstGroup of_stage_0;
  std::set<int> beside_stage_0;
  for (size_t r = 0; r < store.traces().size(); ++r) {
    const RankTrace& trace = store.trace(r);
    const std::set<int> whole = whole_steps(store, r);
    std::set<int> own, steps;
    FirstGroup group;
    for (const Event& event : trace.events) {
      if (event.step >= 0 && !whole.contains(event.step)) continue;
      const int64_t length = std::max<int64_t>(0, end_ns(event, store.clock()) - begin_ns(event, store.clock()));
      if (event.kind == EventKind::kCollective && event.axis == Axis::kPp && event.verb == Verb::kSend) {
        message_ns += length;
        ++messages;
      }
      if (event.kind != EventKind::kCompute || event.microbatch < 0) continue;
      ns[trace.names[event.name]] += length;
      if (trace.names[event.name] == "F") group.forward(event.stage);
      own.insert(std::max(event.stage, 0));  // runs without a pipeline do not name a stage
      microbatches.insert(event.microbatch);
      steps.insert(event.step);
    }
    if (own.empty()) continue;
    rank_steps += static_cast<int64_t>(steps.size());
    stages.insert(own.begin(), own.end());
    ranks.insert(own);
    if (group.stage() == 0) {
      of_stage_0 = group;
      beside_stage_0 = own;
    }
  }
  if (stages.empty() || microbatches.empty()) return {};
  const double passes = static_cast<double>(rank_steps * static_cast<int64_t>(microbatches.size()));
  const auto mean = [&](const char* action) { return static_cast<double>(ns[action]) / passes; };
  const double pair = mean("F&BW"), f = mean("F") + pair / 3, bw = mean("BW") + pair * 2 / 3;
  if (f <= 0) return {};
  RunSchedule out;
  out.forward_ns = static_cast<int64_t>(f);
  out.request.num_ranks = static_cast<int>(ranks.size());
  out.request.num_microbatches = static_cast<int>(microbatches.size());
  out.request.num_chunks = std::max(1, static_cast<int>(stages.size() / ranks.size()));
  out.request.group_size = group_size(of_stage_0, beside_stage_0, out.request);
  out.costs.f = 1;
  out.costs.b = std::max((mean("B") + bw / 2) / f, 0.05);
  out.costs.w = (mean("W") + bw / 2) / f;
  out.costs.c = messages == 0 ? 0 : static_cast<double>(message_ns) / static_cast<double>(messages) / f;
  return out;
}

}  // namespace ranklab::viz
