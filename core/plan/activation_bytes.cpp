#include "core/plan/activation_bytes.h"

#include <algorithm>
#include <map>

#include "core/pipeline/verify.h"
#include "core/plan/stage_needs.h"

namespace ranklab {
namespace {

using NeedsOfStages = std::map<int, StageNeeds>;

struct Peak {
  int64_t held = 0, temporary = 0;
  void see(int64_t now, int64_t on_top) {
    if (now + on_top > held + temporary) held = now, temporary = on_top;
  }
};

// A rank's way through its actions.
Peak walk_actions(const Schedule& schedule, int pp_rank, const NeedsOfStages& needs) {
  Peak peak;
  int64_t now = 0;
  for (const Action& a : schedule.ranks[static_cast<size_t>(pp_rank)]) {
    if (a.has_forward()) peak.see(now += needs.at(a.stage).kept, 0);
    const StageNeeds& back = needs.at(a.backward_stage());
    if (a.has_input_grad()) {
      const bool whole = a.has_weight_grad();
      for (const BackwardMoment& moment : back.moments) peak.see(now, whole ? moment.whole : moment.split);
      now += (whole ? 0 : back.deferred) - back.kept;
    }
    if (a.kind == ActionKind::kW) {
      peak.see(now, back.weight_pass);
      now -= back.deferred;
    }
    peak.see(now, 0);
  }
  return peak;
}

int64_t rope_elements(const StepShape& s) {
  if (s.model.position != PositionKind::kRope) return 0;
  return s.model.seq_length * (s.model.mla.enabled() ? s.model.mla.qk_pos_emb_head_dim : s.model.head_dim());
}

}  // namespace

ActivationBytes estimate_activations(const StepShape& s, const Schedule& schedule, int pp_rank) {
  const int64_t element = s.element_bytes();
  NeedsOfStages needs;
  StageNeeds largest;
  for (const int stage : schedule.stages_of(pp_rank)) {
    const StageNeeds& own = needs[stage] = stage_needs(s, schedule, stage);
    largest.per_layer = std::max(largest.per_layer, own.per_layer);
    if (own.kept > largest.kept) largest.kept = own.kept, largest.deferred = own.deferred;
    largest.row_gradients = std::max(largest.row_gradients, own.row_gradients);
  }
  const Peak peak = walk_actions(schedule, pp_rank, needs);
  const double ratio = static_cast<double>(largest.deferred) / static_cast<double>(std::max<int64_t>(largest.kept, 1));
  const StageMemory memory = stage_memory(schedule, pp_rank, ratio);
  ActivationBytes bytes;
  bytes.per_layer = largest.per_layer * element;
  bytes.microbatches = memory.peak_memory / schedule.stage_share();
  bytes.layers = peak.held * element;
  bytes.temporary = peak.temporary * element;
  bytes.ends = (norm_elements(s, s.model.hidden_size) + dropout_elements(s) + rope_elements(s)) * element;
  if (s.sharded_sequence()) {
    const double row_gradients = memory.peak_deferred * static_cast<double>(largest.row_gradients);
    bytes.gathered = std::max(static_cast<int64_t>(row_gradients), s.tokens() * s.model.hidden_size) * element;
  }
  return bytes;
}

}  // namespace ranklab
