// The kinds of models that the suites train in their layouts: one row each, with sizes that follow from the model's
// own.
#pragma once
#include <span>
#include <string>

#include "core/spec/model_config.h"

namespace ranklab {

struct ModelVariant {
  const char* name;
  void (*change)(ModelConfig&);
};

std::span<const ModelVariant> dense_variants();
// Models with 8 experts. If there are three or more layers, the first one is dense unless a row says otherwise.
std::span<const ModelVariant> expert_variants();
// Throws std::out_of_range.
const ModelVariant& variant_named(const std::string& name);

}  // namespace ranklab
