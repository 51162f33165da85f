#include "viz/model/insights/stage_work.h"

#include <algorithm>
#include <set>
#include <string>

namespace ranklab::viz {
namespace {

// An action of a rank with its stage, to find the action that contains a module.
struct Span {
  int64_t begin_ns, end_ns;
  int stage;
};

// Adds an outermost module to its stage; recomputation counts as part of the backward around it.
void add_module(const std::string& name, int64_t ns, std::set<std::string>& layers, StageWork& to) {
  const std::string path = name.substr(0, name.find(' '));
  const bool layer = path.starts_with("layers.") && path.find('.', 7) == std::string::npos;
  if (name.ends_with(" recompute")) return;
  if (layer) {
    layers.insert(path);
    to.layers_ns += ns;
  } else if (path == "embedding") {
    to.embedding_ns += ns;
  } else if (path == "head") {
    to.head_ns += ns;
  } else if (path.starts_with("mtp.")) {
    to.predicts_further = true;
  }
}

}  // namespace

StageTable stage_table(const TraceStore& store, const Window& window) {
  StageTable table;
  const TraceClock clock = store.clock();
  std::map<int, size_t> first_rank;
  std::set<int> microbatches;
  for (size_t r = 0; r < store.traces().size(); ++r) {
    const RankTrace& trace = store.trace(r);
    std::vector<Span> spans;
    std::set<int> own;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCompute || event.stage < 0 || !window.has(event, clock)) continue;
      if (first_rank.try_emplace(event.stage, r).first->second != r) continue;
      own.insert(event.stage);
      microbatches.insert(event.microbatch);
      table.splits_backward |= trace.names[event.name] == "W";
      StageWork& work = table.stages[event.stage];
      work.rank_index = r;
      work.actions_ns += std::max<int64_t>(0, end_ns(event, clock) - begin_ns(event, clock));
      spans.push_back({begin_ns(event, clock), end_ns(event, clock), event.stage});
    }
    if (own.empty()) continue;
    table.stages_of_rank[r] = static_cast<int>(own.size());
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin_ns < b.begin_ns; });
    std::map<int, std::set<std::string>> layers;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kModule || !window.has(event, clock)) continue;
      const int64_t begin = begin_ns(event, clock);
      auto after = std::upper_bound(spans.begin(), spans.end(), begin,
                                    [](int64_t time, const Span& span) { return time < span.begin_ns; });
      if (after == spans.begin() || begin >= std::prev(after)->end_ns) continue;
      const int stage = std::prev(after)->stage;
      add_module(trace.names[event.name], std::max<int64_t>(0, end_ns(event, clock) - begin), layers[stage],
                 table.stages[stage]);
    }
    for (const auto& [stage, names] : layers) table.stages[stage].layers = static_cast<int>(names.size());
  }
  if (table.stages.size() < 2) return {};
  table.microbatches = static_cast<int>(microbatches.size());
  return table;
}

}  // namespace ranklab::viz
