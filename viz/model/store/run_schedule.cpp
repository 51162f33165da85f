#include "viz/model/store/run_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace ranklab::viz {

std::optional<RunSchedule> run_schedule(const TraceStore& store) {
  std::map<std::string, int64_t> ns;  // by action
  std::set<int> stages, microbatches;
  std::set<std::set<int>> ranks;  // which stages a rank has: one set for each pipeline rank
  std::set<int> steps;
  int64_t message_ns = 0, messages = 0, stage_ranks = 0;
  for (const RankTrace& trace : store.traces()) {
    std::set<int> own;
    for (const Event& event : trace.events) {
      const int64_t length = std::max<int64_t>(0, end_ns(event, store.clock()) - begin_ns(event, store.clock()));
      if (event.kind == EventKind::kCollective && event.axis == Axis::kPp && event.verb == Verb::kSend) {
        message_ns += length;
        ++messages;
      }
      if (event.kind != EventKind::kCompute || event.microbatch < 0) continue;
      ns[trace.names[event.name]] += length;
      own.insert(std::max(event.stage, 0));  // runs without a pipeline name none
      microbatches.insert(event.microbatch);
      steps.insert(event.step);
    }
    if (own.empty()) continue;
    ++stage_ranks;
    stages.insert(own.begin(), own.end());
    ranks.insert(own);
  }
  if (stages.empty() || microbatches.empty()) return {};
  const double passes = static_cast<double>(stage_ranks * static_cast<int64_t>(microbatches.size() * steps.size()));
  const auto mean = [&](const char* action) { return static_cast<double>(ns[action]) / passes; };
  const double pair = mean("F&BW"), f = mean("F") + pair / 3, bw = mean("BW") + pair * 2 / 3;
  if (f <= 0) return {};
  RunSchedule out;
  out.forward_ns = static_cast<int64_t>(f);
  out.request.num_ranks = static_cast<int>(ranks.size());
  out.request.num_microbatches = static_cast<int>(microbatches.size());
  out.request.num_chunks = std::max(1, static_cast<int>(stages.size() / ranks.size()));
  out.costs.f = 1;
  out.costs.b = std::max((mean("B") + bw / 2) / f, 0.05);
  out.costs.w = (mean("W") + bw / 2) / f;
  out.costs.c = messages == 0 ? 0 : static_cast<double>(message_ns) / static_cast<double>(messages) / f;
  return out;
}

}  // namespace ranklab::viz
