#include "core/plan/peak_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/parallel/bucket_layout.h"
#include "core/plan/owned_share.h"
#include "core/plan/rank_memory.h"
#include "core/plan/stage_needs.h"

namespace ranklab {
namespace {

constexpr int64_t kBytesOfFp32 = 4;

size_t at(MemoryCategory category) { return static_cast<size_t>(category); }

std::string layer_unit(const ModelConfig& m, int64_t layer) {
  if (layer < m.num_layers) return "layers." + std::to_string(layer);
  return "mtp." + std::to_string(layer - m.num_layers);
}

// The gradients of a rank over a step. Buffers of stages 0 and 1 stay from step to step; what nobody reduces stays
// where autograd made it; buckets of stages 2 and 3 come with their first gradient and go when they are reduced.
class Gradients {
 public:
  Gradients(const StepShape& shape, const std::vector<PlannedParameter>& parameters,
            const std::vector<PlannedBucket>& buckets)
      : s_(shape), parameters_(parameters) {
    for (const PlannedBucket& bucket : buckets) {
      buckets_ += bucket.bytes();
      (passes_through(bucket) ? passing_ : standing_) += bucket.bytes();
    }
    shared_peak_ = s_.zero_stage >= 2 ? peak_gradient_bytes(s_, buckets) : 0;
  }

  int64_t buckets() const { return buckets_; }
  // When backward has come to here; `share` of all gradients are made by then.
  int64_t now(double share, bool in_first_pass) const {
    const auto made = [share](int64_t bytes) { return static_cast<int64_t>(share * static_cast<double>(bytes)); };
    if (s_.zero_stage < 2) return standing_ + (in_first_pass ? made(passing_) : passing_);
    return in_first_pass ? std::min(made(buckets_), shared_peak_) : shared_peak_;
  }
  // The one that a layer has just made, not yet where it belongs: the product of a wide output is turned once.
  int64_t fresh(int64_t first_layer, int64_t end_layer) const {
    int64_t most = 0;
    for (const PlannedParameter& p : parameters_) {
      for (int64_t layer = first_layer; layer < end_layer; ++layer) {
        if (parameter_unit(p.name) == layer_unit(s_.model, layer)) most = std::max(most, bytes_made(p));
      }
    }
    return most;
  }
  int64_t fresh_head() const {
    int64_t most = 0;
    for (const PlannedParameter& p : parameters_) {
      if (p.part == ModulePart::kHead || p.is_embedding) most = std::max(most, bytes_made(p));
    }
    return most;
  }

 private:
  bool passes_through(const PlannedBucket& bucket) const {
    const int ranks = bucket.is_expert ? s_.dims.edp : s_.dims.dp * s_.dims.cp;
    return ranks == 1 && s_.state().main_grads == s_.dtype && !(bucket.layout.sum_over_tp && s_.dims.tp > 1) &&
           s_.num_microbatches == 1;
  }
  int64_t bytes_made(const PlannedParameter& p) const {
    const bool wide = p.part == ModulePart::kAttentionIn || p.part == ModulePart::kMlpUp || p.part == ModulePart::kHead;
    return (wide ? 2 : 1) * p.elements * s_.element_bytes();
  }

  const StepShape& s_;
  const std::vector<PlannedParameter>& parameters_;
  int64_t buckets_ = 0, standing_ = 0, passing_ = 0, shared_peak_ = 0;
};

// Whole parameters of stage 3: of the units in use and of the next one.
class Units {
 public:
  Units(const StepShape& shape, const std::vector<PlannedBucket>& buckets) : m_(shape.model) {
    for (const PlannedBucket& bucket : buckets) {
      if (!bucket.layout.unit.empty()) bytes_[bucket.layout.unit] += bucket.parameter_bytes();
    }
  }
  int64_t layers(int64_t first, int64_t end) const {
    std::set<std::string> there;
    for (int64_t layer = std::max<int64_t>(first - 1, 0); layer < end; ++layer) there.insert(layer_unit(m_, layer));
    return of(there);
  }
  int64_t last(int64_t last_layer) const {
    std::set<std::string> there = {"final", layer_unit(m_, last_layer)};
    if (m_.tie_embeddings || m_.mtp_num_layers > 0) there.insert("embedding");
    for (int64_t k = 0; k < m_.mtp_num_layers; ++k) there.insert("mtp." + std::to_string(k));
    return of(there);
  }

 private:
  int64_t of(const std::set<std::string>& units) const {
    int64_t bytes = 0;
    for (const std::string& unit : units) bytes += bytes_.contains(unit) ? bytes_.at(unit) : 0;
    return bytes;
  }
  const ModelConfig& m_;
  std::map<std::string, int64_t> bytes_;
};

class StepMemory {
 public:
  StepMemory(const RunPlan& plan, int pp_rank)
      : plan_(plan),
        pp_rank_(pp_rank),
        s_(shape_of(plan)),
        parameters_(planned_parameters(s_, plan.schedule, pp_rank)),
        types_(s_.state()),
        buckets_(planned_buckets(s_, parameters_)),
        gradients_(s_, parameters_, buckets_),
        units_(s_, buckets_),
        activations_(estimate_activations(s_, plan.schedule, pp_rank)) {
    out_.pp_rank = pp_rank;
    const OwnedShare share = largest_share(buckets_);
    owned_ = share.elements;
    for (const PlannedParameter& p : parameters_) largest_parameter_ = std::max(largest_parameter_, p.elements);
    held_[at(MemoryCategory::kOptimizer)] = owned_ * types_.optimizer_bytes();
    for (const PlannedParameter& p : parameters_) {
      if (s_.zero_stage < 3 || s_.shards(p.is_expert) == 1)
        held_[at(MemoryCategory::kParameters)] += p.elements * s_.element_bytes();
    }
    for (const PlannedBucket& bucket : buckets_) {
      if (s_.zero_stage == 3 && bucket.shards > 1)
        held_[at(MemoryCategory::kParameters)] += bucket.parameter_shard_bytes();
    }
  }

  PeakMemory run() {
    const Schedule& schedule = plan_.schedule;
    std::map<int, StageNeeds> needs;
    for (const int stage : schedule.stages_of(pp_rank_)) needs[stage] = stage_needs(s_, schedule, stage);
    std::map<int, bool> seen;  // stages whose gradients are there
    int64_t now = 0;
    for (const Action& a : schedule.ranks[static_cast<size_t>(pp_rank_)]) {
      if (a.has_forward()) now += needs.at(a.stage).kept;
      const int stage = a.backward_stage();
      const StageNeeds& back = needs.at(stage);
      if (a.has_input_grad()) {
        walk_back(stage, back, now, a.has_weight_grad(), !seen[stage]);
        now += (a.has_weight_grad() ? 0 : back.deferred) - back.kept;
      }
      if (a.kind == ActionKind::kW) {
        weight_pass(now + back.weight_pass);
        now -= back.deferred;
      }
      if (a.has_weight_grad() || a.kind == ActionKind::kW) seen[stage] = true;
    }
    update();
    return out_;
  }

 private:
  void walk_back(int stage, const StageNeeds& back, int64_t now, bool whole, bool first_pass) {
    const int part = plan_.schedule.part(stage);
    const int64_t last_layer = s_.first_layer(part) + s_.layers(part) - 1;
    const auto moments = static_cast<double>(back.moments.size());
    double done = 0;
    for (const BackwardMoment& moment : back.moments) {
      CategoryBytes bytes = held_;
      bytes[at(MemoryCategory::kActivations)] = activations(now + (whole ? moment.whole : moment.split));
      bytes[at(MemoryCategory::kGradients)] =
          gradients_.now(done++ / moments, first_pass) + (whole ? fresh(moment) : 0);
      const bool of_layers = moment.first_layer >= 0;
      const bool gathers = moment.kind == MomentKind::kProducts || moment.kind == MomentKind::kHead;
      bytes[at(MemoryCategory::kGathered)] =
          (gathers || !whole ? activations_.gathered : 0) +
          (of_layers ? units_.layers(moment.first_layer, moment.end_layer) : units_.last(last_layer));
      see(bytes);
    }
  }

  int64_t activations(int64_t elements) const { return elements * s_.element_bytes() + activations_.ends; }

  int64_t fresh(const BackwardMoment& moment) const {
    if (moment.kind == MomentKind::kHead) return gradients_.fresh_head();
    if (moment.kind != MomentKind::kProducts) return 0;
    return gradients_.fresh(moment.first_layer, moment.end_layer);
  }

  void weight_pass(int64_t elements) {
    CategoryBytes bytes = held_;
    bytes[at(MemoryCategory::kActivations)] = activations(elements);
    bytes[at(MemoryCategory::kGradients)] = gradients_.now(1, false);
    bytes[at(MemoryCategory::kGathered)] = activations_.gathered;
    see(bytes);
  }

  // Gradients complete, activations gone.
  void update() {
    CategoryBytes bytes = held_;
    bytes[at(MemoryCategory::kActivations)] = activations_.ends;
    bytes[at(MemoryCategory::kGradients)] = gradients_.now(1, false);
    const bool shared = s_.shards(false) > 1 || s_.shards(true) > 1;
    int64_t buffers = 0;
    if (s_.zero_stage == 1 && shared) buffers = owned_ * types_.grad_bytes();
    buffers = std::max(buffers, std::min(owned_, largest_parameter_) * kBytesOfFp32 * types_.widened());
    if ((s_.zero_stage == 1 || s_.zero_stage == 2) && shared) {
      int64_t bucket = 0;
      for (const PlannedBucket& one : buckets_) bucket = std::max(bucket, one.parameter_bytes());
      buffers = std::max(buffers, bucket + bucket / std::max(s_.shards(false), 1));
    }
    if (s_.zero_stage >= 2) bytes[at(MemoryCategory::kGradients)] = owned_ * types_.grad_bytes();
    bytes[at(MemoryCategory::kBuffers)] = buffers;
    see(bytes);
  }

  void see(const CategoryBytes& bytes) {
    if (together(bytes) > together(out_.at_peak)) out_.at_peak = bytes;
    for (size_t i = 0; i < bytes.size(); ++i) out_.highest[i] = std::max(out_.highest[i], bytes[i]);
  }

  const RunPlan& plan_;
  int pp_rank_;
  StepShape s_;
  std::vector<PlannedParameter> parameters_;
  StateTypes types_;
  std::vector<PlannedBucket> buckets_;
  Gradients gradients_;
  Units units_;
  ActivationBytes activations_;
  int64_t owned_ = 0, largest_parameter_ = 0;
  CategoryBytes held_{};
  PeakMemory out_;
};

}  // namespace

int64_t together(const CategoryBytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

PeakMemory peak_memory(const RunPlan& plan, int pp_rank) { return StepMemory(plan, pp_rank).run(); }

PeakMemory fullest_peak(const RunPlan& plan) {
  PeakMemory fullest = peak_memory(plan, 0);
  for (int rank = 1; rank < plan.mesh.size(Axis::kPp); ++rank) {
    const PeakMemory other = peak_memory(plan, rank);
    if (together(other.at_peak) > together(fullest.at_peak)) fullest = other;
  }
  return fullest;
}

}  // namespace ranklab
