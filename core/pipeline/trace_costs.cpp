#include "core/pipeline/trace_costs.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/base/error.h"

namespace ranklab {
namespace {

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  void add(const Mean& other) {
    sum_ += other.sum_;
    count_ += other.count_;
  }
  bool any() const { return count_ > 0; }
  double get() const { return any() ? sum_ / static_cast<double>(count_) : 0; }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

struct StageMeans {
  Mean f, b, w, bw;
  std::set<int> microbatches = {};

  void add(const StageMeans& other) {
    f.add(other.f);
    b.add(other.b);
    w.add(other.w);
    bw.add(other.bw);
  }
};

// Of DualPipe, whose microbatches pass through one of two copies of the model each, the second copy's stages are added
// to the first one's, which are the same parts.
void join_copies(std::vector<StageMeans>& stages) {
  const auto holds = [](const StageMeans& stage, int microbatch) { return stage.microbatches.contains(microbatch); };
  const StageMeans &first = stages.front(), &last = stages.back();
  const bool passes_both =
      std::ranges::any_of(first.microbatches, [&](int microbatch) { return holds(last, microbatch); });
  if (first.microbatches.empty() || last.microbatches.empty() || passes_both || stages.size() % 2 != 0) return;
  const size_t parts = stages.size() / 2;
  for (size_t part = 0; part < parts; ++part) stages[part].add(stages[parts + part]);
  stages.resize(parts);
}

[[noreturn]] void refuse(const std::string& what, const std::string& got) {
  throw Error(ErrorKind::kBadFile, {.where = "trace",
                                    .what = what,
                                    .got = got,
                                    .want = "F, B, W or BW of every stage",
                                    .fix = "trace a run of ranklab train --pp P with at least one step"});
}

double microseconds(const Event& event, TraceClock clock) {
  const int64_t ns = clock == TraceClock::kVirtual ? event.virtual_end_ns - event.virtual_begin_ns
                                                   : event.wall_end_ns - event.wall_begin_ns;
  return static_cast<double>(ns) * 1e-3;
}

StageCost cost_of(const StageMeans& means, size_t stage) {
  if (!means.f.any() || (!means.bw.any() && !(means.b.any() && means.w.any())))
    refuse("the trace misses actions of a stage", "stage " + std::to_string(stage));
  if (means.b.any()) return {.f = means.f.get(), .b = means.b.get(), .w = means.w.get(), .bw = means.bw.get()};
  return {.f = means.f.get(), .b = means.bw.get() / 2, .w = means.bw.get() / 2};
}

}  // namespace

PipelineCosts costs_of_trace(const TraceFile& file) {
  std::vector<StageMeans> stages;
  std::set<int> pipeline_ranks;
  Mean message;
  for (const RankTrace& rank : file.ranks) {
    std::set<int> here;
    for (const Event& event : rank.events) {
      if (event.kind == EventKind::kCollective && event.axis == Axis::kPp && event.verb == Verb::kSend)
        message.add(microseconds(event, file.clock));
      if (event.kind != EventKind::kCompute || event.stage < 0 || event.stage >= 1 << 20) continue;
      const auto stage = static_cast<size_t>(event.stage);
      if (stages.size() <= stage) stages.resize(stage + 1);
      const std::string& name = rank.names[event.name];
      StageMeans& means = stages[stage];
      Mean* mean = name == "F"    ? &means.f
                   : name == "B"  ? &means.b
                   : name == "W"  ? &means.w
                   : name == "BW" ? &means.bw
                                  : nullptr;
      if (mean == nullptr) continue;
      mean->add(microseconds(event, file.clock));
      if (event.microbatch >= 0) means.microbatches.insert(event.microbatch);
      here.insert(event.stage);
    }
    if (!here.empty()) pipeline_ranks.insert(*here.begin());  // ranks of one pipeline hold different stages
  }
  if (stages.empty()) refuse("the trace has no pipeline actions", "none");
  join_copies(stages);
  PipelineCosts costs{.stages = {}, .c = message.get(), .split = true, .mean = {}};
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    costs.stages.push_back(cost_of(stages[stage], stage));
    costs.split = costs.split && stages[stage].b.any();
  }
  costs.mean = mean_of_rank(costs, static_cast<double>(pipeline_ranks.size()));
  return costs;
}

}  // namespace ranklab
