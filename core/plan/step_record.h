// What one training step of a run does and holds, recorded: the training code itself runs on shapes (backends/meta), so
// a model, a layout, a recipe or a user's own layer is planned without a word about it here. One rank of each pipeline
// rank runs and stands in for the others of its stage, which do alike: the one that owns most of what data-parallel
// ranks shard. A first step makes what stays (optimizer states), the second is recorded. Cost: two steps of operators
// that compute nothing, about a microsecond each. Thread rule: the thread that would train.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/plan/category_bytes.h"
#include "core/plan/traffic_count.h"
#include "core/runtime/train_config.h"

namespace ranklab {

class World;               // core/comm/world.h
struct RuntimeComponents;  // core/runtime/components.h

// Of a step, on the virtual clock.
struct RankTime {
  int64_t begin_ns = 0, end_ns = 0;
  int64_t compute_ns = 0;
  int64_t peer_wait_ns = 0;  // for members and messages that came later
  std::array<int64_t, static_cast<size_t>(Axis::kCount)> exposed_ns{};
  double flops = 0;  // of matrix products and attention, without what is computed again
};

// How far a record may be from the run that it is of, when experts get equally many tokens: tests/plan holds it to
// that.
constexpr double kPeakTolerance = 0.05;
constexpr double kStepTimeTolerance = 0.01;

struct RankRecord {
  int global_rank = 0;
  int pp_rank = 0;
  CategoryBytes at_peak{};  // when the sum is highest
  CategoryBytes highest{};  // of each category by itself
  TrafficCount traffic = {};
  RankTime time = {};
  std::vector<int64_t> kept_bytes = {};  // by a microbatch from F to its backward, of each of its stages
};

struct StepRecord {
  int64_t step_ns = 0;                 // from the latest rank's end of a step to that of the next
  std::vector<RankRecord> ranks = {};  // in the order of their global ranks
  std::vector<RankTrace> traces = {};  // what they recorded of it; repeated microbatches have only their messages

  const RankRecord& of_pipeline_rank(int pp_rank) const;
  const RankRecord& fullest() const;  // whose peak is highest
};

// Makes a world of shapes; stand_in[rank] is the rank that runs in its place. Programs hand in make_meta_world().
using ShapeWorldMaker = std::function<std::shared_ptr<World>(std::vector<int> stand_in)>;

// The same run as it is recorded: simulated, without files, validation and samples, its second step traced.
RunPlan plan_to_record(RunPlan plan);

// Of the default parts, or of a program's own model, optimizer and schedule (its data are not asked: batches have the
// plan's shape). Throws what a rank of the run throws.
StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world);
StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& parts);

}  // namespace ranklab
