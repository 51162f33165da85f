// The keys of each family's config.json (hf_key.h), in the order they are written and read; those that are written only
// are transformers' own. Rotary positions have a form of their own (hf_rope.h). Thread rule: immutable.
#pragma once
#include <vector>

#include "core/checkpoint/hf_family.h"
#include "core/checkpoint/hf_key.h"

namespace ranklab {

const std::vector<HfKey>& hf_keys(const HfFamily& family);

}  // namespace ranklab
