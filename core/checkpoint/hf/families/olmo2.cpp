// Olmo2ForCausalLM (OLMo 2, arXiv 2501.00656), without sliding-window attention.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/olmo.h"

namespace ranklab {
namespace {

void check_olmo2(const HfRefusal& r, const ModelConfig& c) {
  check_olmo(r, c);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
}

}  // namespace

HfFamily olmo2_family() {
  return {.architecture = "Olmo2ForCausalLM",
          .model_type = "olmo2",
          .layer_rules = olmo_layer_rules(),
          .model = olmo_model(),
          .keys = together({olmo_keys(), ending_keys(false)}),
          .has_form = [](const ModelConfig& c) { return c.norm_placement == NormPlacement::kBehind; },
          .check = check_olmo2};
}

}  // namespace ranklab
