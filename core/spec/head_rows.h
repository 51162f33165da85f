// Which rows of attention's weights determine the size of each head's queries and keys; scaling these rows scales the
// logits of single heads (core/optim/qk_clip.h). They are rows of the projections, or, where norms follow the
// projections (QK-norm), of the norms. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/spec/model_config.h"

namespace ranklab {

struct HeadRow {
  // kRotaryQuery: the rotary part of a query in latent attention, whose rotary key is shared by all heads.
  enum class Part { kOther, kQuery, kRotaryQuery, kKey };
  Part part = Part::kOther;  // kOther: values
  int64_t head = 0;          // the query head; for rows that several heads share, the first of these heads
};

// `module`: a module's name within its layer (layer_specs.h), such as "qkv", or "q_up" in latent attention.
bool has_head_rows(const ModelConfig& config, std::string_view module);
// `row`: the row's index in the unsharded weight or bias. REQUIRES: has_head_rows().
HeadRow head_row(const ModelConfig& config, std::string_view module, int64_t row);
// How many neighbouring query heads can only be scaled together: those that read the same key head, or all heads where
// the norms have one weight for all of them.
int64_t heads_scaled_together(const ModelConfig& config);
// Layers whose logits do not depend on the size of any weight, because norms without weights are applied last (Llama
// 4). MTP modules are numbered after the other layers.
std::vector<int64_t> layers_of_fixed_logits(const ModelConfig& config);

}  // namespace ranklab
