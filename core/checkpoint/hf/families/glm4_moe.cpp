// Glm4MoeForCausalLM (GLM-4.5 and 4.6, arXiv 2508.06471): grouped queries; biases of queries, keys and values; partial
// rotary embeddings; norms of each head's query and key, or none; DeepSeek-V3's experts and MTP modules.
#include <utility>

#include "core/checkpoint/hf/families/deepseek_experts.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

// A model without any experts is refused, because it belongs to other classes, with other names.
HfKey some_dense_layers() {
  HfKey key = first_dense_layers_key(1);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    set(c, value);
    if (!c.moe.enabled()) value.refuse("fewer than all layers: one with experts at least");
  };
  return key;
}

HfKeys glm4_moe_keys() {
  HfKey predictions = hf_member("num_nextn_predict_layers", RANKLAB_HF(mtp_num_layers), 1);
  predictions.other = "num_mtp_layers";
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                    hf_member("attention_bias", RANKLAB_HF(add_qkv_bias), false),
                    hf_member("use_qk_norm", RANKLAB_HF(qk_norm), false)},
                   sigmoid_router_keys(1.0),
                   {std::move(predictions), some_dense_layers()},
                   ending_keys(false)});
}

void check_glm4_moe(const HfRefusal& r, const ModelConfig& c) {
  check_norms_before(r, c);
  check_no_gemma(r, c);
  check_sequential(r, c);
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  r.require(c.activation == ActivationKind::kSwiGlu, "--activation", name(c.activation), "swiglu");
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-attention-bias", c.add_attention_bias);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  check_plain_rotary_positions(r, c);
  check_sigmoid_experts(r, c);
}

}  // namespace

HfFamily glm4_moe_family() {
  ModelConfig model;
  model.rotary_percent = 0.5;
  return {.architecture = "Glm4MoeForCausalLM",
          .model_type = "glm4_moe",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), head_norm_rules(), llama_mlp_rules(),
                                   expert_rules(), shared_expert_rules("mlp.shared_experts"), prediction_rules()}),
          .model = model,
          .keys = glm4_moe_keys(),
          .balancing_bias = "mlp.gate.e_score_correction_bias",
          .has_form =
              [](const ModelConfig& c) {
                return !c.mla.enabled() && c.moe.enabled() && c.moe.score == RouterScore::kSigmoid;
              },
          .check = check_glm4_moe};
}

}  // namespace ranklab
