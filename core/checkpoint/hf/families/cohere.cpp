// CohereForCausalLM (Command R, Aya Expanse; huggingface.co/CohereLabs/c4ai-command-r-v01), without norms of queries
// and keys: attention and MLP read the residual stream through one LayerNorm without a bias; rotated rows of a head are
// adjacent; logits are multiplied by a number of the model. Cohere2ForCausalLM (Command R7B, Command A;
// huggingface.co/CohereLabs/c4ai-command-r7b-12-2024): some layers have a window and rotary positions, the others
// neither.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

ModelConfig cohere_model() {
  ModelConfig model;
  model.norm = NormKind::kLayerNorm;
  model.norm_bias = false;
  model.residual_form = ResidualForm::kParallelOneNorm;
  return model;
}

HfKeys cohere_keys() {
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                    hf_member("layer_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                    hf_member("logit_scale", RANKLAB_HF(logit_scale), 0.0625),
                    hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false), pad_token_key(nullptr)}});
}

HfRules cohere_layer_rules() { return together({llama_norm_rules(), neighbours_attention_rules(), llama_mlp_rules()}); }

bool has_cohere_form(const ModelConfig& c) { return c.norm == NormKind::kLayerNorm && !c.norm_bias; }

void check_cohere(const HfRefusal& r, const ModelConfig& c) {
  ModelConfig one_by_one = c;
  one_by_one.residual_form = ResidualForm::kSequential;
  check_rotary_layers(r, one_by_one);
  r.require(c.residual_form == ResidualForm::kParallelOneNorm, "--residual-form",
            c.residual_form == ResidualForm::kParallel ? "parallel" : "sequential", "parallel-one-norm");
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
  r.require(c.query_width() == c.hidden_size, "--kv-channels", std::to_string(c.kv_channels),
            "0: --hidden-size / --num-attention-heads");
}

// The interval of layers without a window and positions, for files without a list.
HfKey window_interval() {
  HfKey key = rotary_interval_key();
  key.key = "sliding_window_pattern";
  return key;
}

HfKey windows_and_positions() {
  HfKey key = layer_types_key(true);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    if (c.num_layers < 1 || c.num_layers > kMostLayers) return;  // validate() refuses it
    set(c, value);
    std::vector<bool> layers;
    for (int64_t layer = 0; layer < c.num_layers; ++layer)
      layers.push_back(value.is_null() ? c.has_rope(layer) : c.window_of_layer(layer) > 0);
    set_window_layers(c, layers);
    c.rope_layers = layer_pattern_of(layers);
  };
  return key;
}

void check_cohere2(const HfRefusal& r, const ModelConfig& c) {
  ModelConfig rotary = c;
  rotary.rope_layers = {};
  check_cohere(r, rotary);
  for (int64_t layer = 0; layer < c.num_layers; ++layer)
    r.require(c.has_rope(layer) == (c.window_of_layer(layer) > 0), "--no-rope-freq",
              layer_pattern_text(c.rope_layers, PatternOne::kLacks),
              "no positions in the layers without a window, and in no other");
}

}  // namespace

HfFamily cohere_family() {
  ModelConfig model = cohere_model();
  model.rope_theta = 500000;
  return {.architecture = "CohereForCausalLM",
          .model_type = "cohere",
          .layer_rules = cohere_layer_rules(),
          .model = model,
          .keys = together({cohere_keys(), {hf_constant("use_qk_norm", false)}, ending_keys(true)}),
          .has_form = has_cohere_form,
          .check = [](const HfRefusal& r, const ModelConfig& c) {
            check_cohere(r, c);
            r.require_number("--window-size", static_cast<double>(c.window_size), 0);
          }};
}

HfFamily cohere2_family() {
  return {
      .architecture = "Cohere2ForCausalLM",
      .model_type = "cohere2",
      .layer_rules = cohere_layer_rules(),
      .model = cohere_model(),
      .keys = together(
          {cohere_keys(), {window_number_key(4096), window_interval(), windows_and_positions()}, ending_keys(true)}),
      .has_form =
          [](const ModelConfig& c) { return has_cohere_form(c) && (c.window_size > 0 || !c.rope_layers.all()); },
      .check = check_cohere2};
}

}  // namespace ranklab
