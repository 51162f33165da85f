#include "core/parity/every_layout.h"

#include <set>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/parity/layout_features.h"
#include "core/parity/smaller_layouts.h"

namespace ranklab {
namespace {

class Layouts {
 public:
  // Adds a layout, unless the model or the batch does not allow it, or it is already there because a choice changed
  // nothing.
  void add(const TrainConfig& config) {
    try {
      const std::string text = layout_flags(config) + " " + std::string(name(config.context_split.exchange));
      if (known_.insert(text).second) all_.push_back(config);
    } catch (const Error&) {
      return;
    }
  }
  std::vector<TrainConfig> take() { return std::move(all_); }

 private:
  std::vector<TrainConfig> all_;
  std::set<std::string> known_;
};

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
  const std::vector<LayoutFeature> features = layout_features();
  for (const ParallelDims& split : every_split(config.parallel.world)) {
    TrainConfig c = config;
    c.parallel = split;
    c.virtual_stages = 1;
    c.microbatch_group = 0;
    c.pipeline_layout.clear();
    c.micro_batch_size = 0;
    c.num_microbatches = 0;
    layouts.add(c);
    for (const LayoutFeature& feature : features) {
      if (!feature.matters(c)) continue;
      for (const LayoutChoice& choice : feature.choices) {
        TrainConfig changed = c;
        choice.change(changed);
        layouts.add(changed);
      }
    }
  }
  return layouts.take();
}

}  // namespace ranklab
