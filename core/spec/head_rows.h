// Which rows of attention's weights say how large the queries and keys of a head are: what scales the logits of single
// heads (core/optim/qk_clip.h). Those of the projections, or where norms follow these (QK-norm), of the norms'.
// Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/spec/model_config.h"

namespace ranklab {

struct HeadRow {
  // kRotaryQuery: the rotary part of a query of latent attention, whose keys are one for all heads.
  enum class Part { kOther, kQuery, kRotaryQuery, kKey };
  Part part = Part::kOther;  // values
  int64_t head = 0;          // the query head; of rows that several have in common, the first of them
};

// `module`: a name in its layer (layer_specs.h), as "qkv", or "q_up" of latent attention.
bool has_head_rows(const ModelConfig& config, std::string_view module);
// `row`: of the whole weight or bias. REQUIRES: has_head_rows().
HeadRow head_row(const ModelConfig& config, std::string_view module, int64_t row);
// How many neighbouring query heads can only be scaled together: those that read one key head, or under norms with one
// weight for all heads, all.
int64_t heads_scaled_together(const ModelConfig& config);
// Layers whose logits no weight makes larger: norms without weights come last (Llama 4). MTP modules follow the others.
std::vector<int64_t> layers_of_fixed_logits(const ModelConfig& config);

}  // namespace ranklab
