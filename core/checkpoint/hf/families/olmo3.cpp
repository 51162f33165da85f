// Olmo3ForCausalLM (OLMo 3; huggingface.co/allenai/Olmo-3-1025-7B): three of four layers have sliding-window attention;
// where RoPE is scaled, those layers keep the unscaled frequencies.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/olmo.h"
#include "core/checkpoint/hf/rope.h"

namespace ranklab {
namespace {

constexpr const char* kOlmo3 = "Olmo3ForCausalLM";
constexpr double kBase = 500000.0;  // for files without a value

// rope.h reads and writes the base; the layers with a window use the same one.
HfKey local_base() {
  const auto set = [](ModelConfig& c, const HfValue& value) { value.into(c.local_rope_theta); };
  return {"rope_theta", {}, set, false, kBase};
}

// A model without any window is OLMo 2's, whose family is chosen unless a setting names another.
HfKey layer_types() {
  HfKey key = layer_types_key(true);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    set(c, value);
    if (c.window_size == 0) c.hf_architecture = kOlmo3;
  };
  return key;
}

void check_olmo3(const HfRefusal& r, const ModelConfig& c) {
  check_olmo(r, c);
  check_hf_rope_of_kinds(r, c);
  if (c.window_size > 0) r.require_number("--rotary-base-local", c.local_rope_theta, c.rope_theta);
}

}  // namespace

HfFamily olmo3_family() {
  ModelConfig model = olmo_model();
  model.window_layers = {.skip_freq = 4};
  model.rope_theta = kBase;
  return {.architecture = kOlmo3,
          .model_type = "olmo3",
          .layer_rules = olmo_layer_rules(),
          .model = model,
          .keys = together({olmo_keys(), {window_number_key(4096), layer_types(), local_base()}, ending_keys(false)}),
          .has_form =
              [](const ModelConfig& c) {
                return c.norm_placement == NormPlacement::kBehind && (c.window_size > 0 || c.hf_architecture == kOlmo3);
              },
          .check = check_olmo3};
}

}  // namespace ranklab
