// StableLmForCausalLM (StableLM 2, arXiv 2402.17834): LayerNorm, SwiGLU, partial rotary embeddings; biases on queries,
// keys and values, or none. Attention and MLP either follow one another or read the same norm.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys stablelm_keys() {
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                    hf_member("layer_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                    hf_member("use_qkv_bias", RANKLAB_HF(add_qkv_bias), false),
                    hf_constant("qk_layernorm", false),
                    parallel_residual_key(ResidualForm::kParallelOneNorm, false),
                    hf_note("hidden_dropout", 0.0),
                    {"partial_rotary_factor", [](const ModelConfig& c) { return HfJson(c.rotary_percent); },
                     [](ModelConfig&, const HfValue&) {}}},
                   ending_keys(false)});
}

void check_stablelm(const HfRefusal& r, const ModelConfig& c) {
  ModelConfig one_by_one = c;
  if (c.residual_form == ResidualForm::kParallelOneNorm) one_by_one.residual_form = ResidualForm::kSequential;
  check_partly_rotary_layers(r, one_by_one);
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  r.require_off("--add-attention-bias", c.add_attention_bias);
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
  r.require(c.query_width() == c.hidden_size, "--kv-channels", std::to_string(c.kv_channels),
            "0: --hidden-size / --num-attention-heads");
}

}  // namespace

HfFamily stablelm_family() {
  ModelConfig model;
  model.norm = NormKind::kLayerNorm;
  model.rotary_percent = 0.25;
  return {.architecture = "StableLmForCausalLM",
          .model_type = "stablelm",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = stablelm_keys(),
          .has_form =
              [](const ModelConfig& c) {
                return c.norm == NormKind::kLayerNorm && c.position == PositionKind::kRope &&
                       c.activation == ActivationKind::kSwiGlu;
              },
          .check = check_stablelm};
}

}  // namespace ranklab
