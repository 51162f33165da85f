// The parameters that a rank will have, without making them, and the buckets that their gradients are reduced in: the
// rows of module_table.h cut as the layout says. Cost: a few additions a parameter. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/module_table.h"
#include "core/parallel/bucket_layout.h"
#include "core/pipeline/schedule.h"
#include "core/plan/step_shape.h"

namespace ranklab {

struct PlannedParameter {
  std::string name;
  ModulePart part = ModulePart::kEmbedding;
  int64_t elements = 0;                  // on this rank
  bool sum_over_tp = false;              // replicated over tp, and its gradient saw only this rank's positions or heads
  bool is_expert = false;                // reduced over edp instead of dp
  bool is_embedding = false;             // the token embedding, which the last stage may have, too
  int local_stage = 0;                   // among the rank's own stages
  std::vector<int> pipeline_ranks = {};  // that hold a copy, when there are several
  int64_t cols = 1;                      // on this rank
  std::vector<int64_t> row_parts = {};   // fused matrices below each other
};

// In creation order, as the transformer makes them for this stage of a chain. A tied head is the embedding; on another
// stage it is a copy of it.
std::vector<PlannedParameter> planned_parameters(const StepShape& shape, int stage);
// ... on a rank of a pipeline, whose stages share an embedding that two of them have. `ep_rank` names its experts.
std::vector<PlannedParameter> planned_parameters(const StepShape& shape, const Schedule& schedule, int pp_rank,
                                                 int ep_rank = 0);

// Those of the modules that belong to the units of these parameters (parameter_unit()).
std::vector<std::string> modules_of(const std::vector<std::string>& modules,
                                    const std::vector<PlannedParameter>& parameters);

struct PlannedBucket {
  BucketLayout layout;  // its items are indices of the rank's parameters
  bool is_expert = false;
  Axis axis = Axis::kDp;  // whose group reduces it, and shares it out
  int shards = 1;
  int64_t parameter_bytes_each = 4;  // of an element; the layout's are those of gradients
  // Stage 3 with quantized weights gathered in 8 bits: bytes of a gather, and groups whose magnitudes ranks agree on
  // after an update; 0: neither.
  int64_t coded_bytes = 0;
  int64_t coded_groups = 0;

  int64_t elements() const { return layout.elements; }
  int64_t bytes() const { return layout.bytes(); }  // of gradients
  int64_t shard_bytes() const { return bytes() / shards; }
  int64_t parameter_bytes() const { return elements() * parameter_bytes_each; }
  int64_t gathered_bytes() const { return coded_bytes > 0 ? coded_bytes : parameter_bytes(); }
  int64_t parameter_shard_bytes() const { return parameter_bytes() / shards; }
};

// As GradReducer fills them (core/parallel/bucket_layout.h), those of dense parameters, of experts, and last the one
// that is summed over tp.
std::vector<PlannedBucket> planned_buckets(const StepShape& shape, const std::vector<PlannedParameter>& parameters);

}  // namespace ranklab
