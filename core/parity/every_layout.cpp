#include "core/parity/every_layout.h"

#include <functional>
#include <utility>

#include "core/base/error.h"
#include "core/pipeline/schedules.h"

namespace ranklab {
namespace {

class Layouts {
 public:
  void add(const TrainConfig& config) {
    try {
      resolve(config);
      all_.push_back(config);
    } catch (const Error&) {
      // The model or the batch does not divide.
    }
  }
  // The layout changed in one thing.
  void add(TrainConfig config, const std::function<void(TrainConfig&)>& change) {
    change(config);
    add(config);
  }
  std::vector<TrainConfig> take() { return std::move(all_); }

 private:
  std::vector<TrainConfig> all_;
};

void add_features(Layouts& layouts, const TrainConfig& config) {
  const ParallelDims& dims = config.parallel;
  if (dims.dp * dims.cp > 1)
    for (int stage = 1; stage < static_cast<int>(kZeroStages.size()); ++stage)
      layouts.add(config, [&](TrainConfig& c) { c.zero_stage = stage; });
  if (dims.pp > 1) {
    for (const ScheduleKind& kind : schedule_kinds()) {
      if (config.pipeline_schedule == kind.name) continue;
      layouts.add(config, [&](TrainConfig& c) {
        c.pipeline_schedule = kind.name;
        c.virtual_stages = kind.chunks == 0 ? 2 : 1;
      });
    }
  }
  if (dims.cp > 1)
    for (const ContextExchange exchange : {ContextExchange::kAllGather, ContextExchange::kAllToAll})
      layouts.add(config, [&](TrainConfig& c) { c.context_split.exchange = exchange; });
  if (dims.tp > 1) layouts.add(config, [](TrainConfig& c) { c.sequence_parallel = false; });
  if (config.model.moe.enabled())
    for (int ep = 2; ep <= dims.world / dims.pp; ep *= 2)
      layouts.add(config, [&](TrainConfig& c) { c.parallel.ep = ep; });
}

}  // namespace

std::vector<ParallelDims> every_split(int world) {
  std::vector<ParallelDims> splits;
  for (int pp = 1; pp <= world; ++pp) {
    for (int tp = 1; pp * tp <= world; ++tp) {
      for (int cp = 1; pp * tp * cp <= world; ++cp) {
        const int model_ranks = pp * tp * cp;
        if (world % model_ranks == 0)
          splits.push_back({.world = world, .tp = tp, .cp = cp, .pp = pp, .dp = world / model_ranks});
      }
    }
  }
  return splits;
}

std::vector<TrainConfig> every_layout(const TrainConfig& config) {
  Layouts layouts;
  for (const ParallelDims& split : every_split(config.parallel.world)) {
    TrainConfig c = config;
    c.parallel = split;
    c.virtual_stages = 1;
    c.pipeline_layout.clear();
    c.micro_batch_size = 0;
    c.num_microbatches = 0;
    layouts.add(c);
    add_features(layouts, c);
  }
  return layouts.take();
}

}  // namespace ranklab
