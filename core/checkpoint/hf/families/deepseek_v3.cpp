// DeepseekV3ForCausalLM (arXiv 2412.19437), with the names of the published weights, which the classes of transformers
// read: latent attention, YaRN, sigmoid-routed experts in groups, dense first layers, and MTP modules stored as layers
// after the last one.
#include "core/checkpoint/hf/families/deepseek_experts.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/latent_attention.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys router_keys() {
  return together({sigmoid_router_keys(2.5),
                   {hf_constant("scoring_func", "sigmoid"), hf_constant("topk_method", "noaux_tc"),
                    hf_constant("moe_layer_freq", 1), balancing_key("aux_loss_alpha", LoadBalancing::kSeqAuxLoss),
                    hf_note("seq_aux", true)}});
}

HfKeys deepseek_v3_keys() {
  return together({latent_attention_keys(),
                   {hf_member("rope_interleave", RANKLAB_HF(hf_rope_interleave), true)},
                   router_keys(),
                   {hf_member("num_nextn_predict_layers", RANKLAB_HF(mtp_num_layers), 0), first_dense_layers_key(3)},
                   ending_keys(false)});
}

void check_deepseek_v3(const HfRefusal& r, const ModelConfig& c) {
  check_latent_attention(r, c);
  check_sigmoid_experts(r, c);
}

}  // namespace

HfFamily deepseek_v3_family() {
  return {.architecture = "DeepseekV3ForCausalLM",
          .model_type = "deepseek_v3",
          .other_model_type = "kimi_k2",
          .layer_rules = together({llama_norm_rules(), latent_attention_rules(), llama_mlp_rules(), expert_rules(),
                                   shared_expert_rules("mlp.shared_experts"), prediction_rules()}),
          .keys = deepseek_v3_keys(),
          .balancing_bias = "mlp.gate.e_score_correction_bias",
          .has_form = [](const ModelConfig& c) { return c.mla.enabled(); },
          .check = check_deepseek_v3};
}

}  // namespace ranklab
