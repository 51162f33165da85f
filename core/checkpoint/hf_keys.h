// Keys of config.json (hf_key.h) that several Hugging Face families have, in the order they are written and read; those
// that are written only are transformers' own. Rotary positions have a form of their own (hf_rope.h).
// Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/hf_key.h"

namespace ranklab {

using HfKeys = std::vector<HfKey>;

void append(HfKeys& keys, HfKeys more);
// Whether sums and products of a few such sizes stay inside 64 bits. They are checked for good when all are read.
bool is_sane(int64_t size);

// The sizes of any transformer, under the names of Llama, and its activation, if any is named.
HfKeys transformer_keys(const char* activation_key = "hidden_act", const char* activation = "silu");
HfKeys ending_keys(bool tied);  // `tied`: of a file that does not say
HfKey positions_key(const std::string& key);
// The width of a head, behind the sizes. `absent`: of a file without it; null: hidden_size / num_attention_heads.
HfKey head_dim_key(HfJson absent = {});

// The window of attention. `absent`: of a file that does not say; null: none.
HfKey window_key(HfJson absent = {});

// ... and, read behind it, which layers have it; without a list nothing changes. Written where layers differ, or
// `always`.
HfKey layer_types_key(bool always);

// How many routed experts. A file says otherwise that no layer has any, so 0 is refused.
HfKey experts_key(const std::string& key);
// Whether the weights of a token's experts are made to sum to 1. `absent`: of a file that does not say.
HfKey normalization_key(bool absent);
// Training only; which tokens the loss balances is not told.
HfKey balancing_key(const std::string& key, LoadBalancing kind);

}  // namespace ranklab
