// The parameters that a rank will have, without making them, and the buckets that their gradients are reduced in: the
// rows of module_table.h cut as the layout says. Cost: a few additions a parameter. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/model/module_table.h"
#include "core/pipeline/schedule.h"
#include "core/plan/step_shape.h"

namespace ranklab {

struct PlannedParameter {
  ModulePart part = ModulePart::kEmbedding;
  int64_t elements = 0;       // on this rank
  bool sum_over_tp = false;   // replicated over tp, and its gradient saw only this rank's positions
  bool is_expert = false;     // reduced over edp instead of dp
  bool is_embedding = false;  // the token embedding, which the last stage may have, too
  int local_stage = 0;        // among the rank's own stages
};

// In creation order, as the transformer makes them for this stage of a chain. A tied head is the embedding; on another
// stage it is a copy of it.
std::vector<PlannedParameter> planned_parameters(const StepShape& shape, int stage);
// ... on a rank of a pipeline, whose stages share an embedding that two of them have.
std::vector<PlannedParameter> planned_parameters(const StepShape& shape, const Schedule& schedule, int pp_rank);

struct PlannedBucket {
  int64_t elements = 0;  // each gradient padded to a cache line
  int64_t parameters = 0;
  bool sum_over_tp = false;
  bool is_expert = false;
};

// As GradReducer fills them: in reverse creation order, experts apart, the tp-summed bucket last. `bucket_of` receives
// the bucket of every parameter.
std::vector<PlannedBucket> planned_buckets(const StepShape& shape, const std::vector<PlannedParameter>& parameters,
                                           std::vector<size_t>& bucket_of);

}  // namespace ranklab
