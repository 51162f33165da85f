// Gemma2ForCausalLM (arXiv 2408.00118): every other layer has sliding-window attention; scores and logits are capped.
#include "core/base/text.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/gemma.h"

namespace ranklab {
namespace {

HfKeys gemma2_keys() {
  return together({gemma_keys(),
                   {window_number_key(4096), layer_types_key(true),
                    softcapping_key("attn_logit_softcapping", &ModelConfig::attn_logit_softcapping, 50.0),
                    softcapping_key("final_logit_softcapping", &ModelConfig::final_logit_softcapping, 30.0)},
                   ending_keys(true)});
}

void check_gemma2(const HfRefusal& r, const ModelConfig& c) {
  check_gemma(r, c);
  r.require(!c.has_local_rope(), "--rotary-base-local", strprintf("%g", c.local_rope_theta), "0: as in other layers");
}

}  // namespace

HfFamily gemma2_family() {
  ModelConfig model = gemma_model();
  model.window_layers = {.skip_freq = 2};
  return {.architecture = "Gemma2ForCausalLM",
          .model_type = "gemma2",
          .layer_rules = together({gemma_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = gemma2_keys(),
          .has_form = [](const ModelConfig& c) { return c.norm_placement == NormPlacement::kBoth; },
          .check = check_gemma2};
}

}  // namespace ranklab
