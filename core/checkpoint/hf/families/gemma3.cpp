// Gemma3ForCausalLM (arXiv 2503.19786), text only: five of six layers have sliding-window attention and their own
// rotary frequencies; each head's query and key has a norm.
#include "core/base/text.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/gemma.h"
#include "core/checkpoint/hf/rope.h"

namespace ranklab {
namespace {

// Which layers have the window in files without a list of layers. On export it is derived from the list; with a pattern
// of six, all layers of a model with five layers have the window.
HfKey window_pattern() {
  const auto get = [](const ModelConfig& c) {
    std::vector<bool> windows;
    for (int64_t layer = 0; layer < c.num_layers; ++layer) windows.push_back(c.window_of_layer(layer) > 0);
    const int64_t skip_freq = layer_pattern_of(windows).skip_freq;
    return skip_freq > 1 ? HfJson(skip_freq) : not_written();
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    if (value.integer() < 2) value.refuse("2 or more");
    c.window_layers = {.skip_freq = value.integer()};
  };
  return {"sliding_window_pattern", get, set};
}

HfKeys gemma3_keys() {
  return together({gemma_keys(),
                   {window_number_key(4096), window_pattern(),
                    hf_unused("_sliding_window_pattern"),  // not read by the class
                    layer_types_key(true), hf_member("rope_local_base_freq", RANKLAB_HF(local_rope_theta), 10000.0),
                    hf_constant("attn_logit_softcapping", nullptr),
                    softcapping_key("final_logit_softcapping", &ModelConfig::final_logit_softcapping, nullptr)},
                   ending_keys(true)});
}

void check_gemma3(const HfRefusal& r, const ModelConfig& c) {
  check_gemma(r, c);
  check_hf_rope_of_kinds(r, c);
  r.require(c.qk_norm_width == QkNormWidth::kHead, "--qk-layernorm-width", "all-heads", "head");
  r.require_number("--attn-logit-softcapping", c.attn_logit_softcapping, 0);
  r.require(c.window_size == 0 || c.has_local_rope(), "--rotary-base-local", strprintf("%g", c.local_rope_theta),
            "a base of layers with a window");
}

}  // namespace

HfFamily gemma3_family() {
  ModelConfig model = gemma_model();
  model.qk_norm = true;
  model.window_layers = {.skip_freq = 6};
  model.rope_theta = 1e6;
  return {.architecture = "Gemma3ForCausalLM",
          .model_type = "gemma3_text",
          .layer_rules = together({gemma_norm_rules(), llama_attention_rules(), head_norm_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = gemma3_keys(),
          .class_defaults = {{"vocab_size", 262208},
                             {"hidden_size", 2304},
                             {"intermediate_size", 9216},
                             {"num_hidden_layers", 26},
                             {"num_attention_heads", 8},
                             {"num_key_value_heads", 4},
                             {"max_position_embeddings", 131072},
                             {"pad_token_id", 0},
                             {"eos_token_id", 1},
                             {"bos_token_id", 2}},
          .has_form = [](const ModelConfig& c) { return c.norm_placement == NormPlacement::kBoth && c.qk_norm; },
          .check = check_gemma3};
}

}  // namespace ranklab
