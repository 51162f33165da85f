// DeepseekV2ForCausalLM (arXiv 2405.04434; DeepSeek-V2-Lite): latent attention, YaRN, and softmax-routed experts, whose
// weights are not normalized. Groups of experts are refused (the full DeepSeek-V2 chooses among them by the score of
// their best expert).
#include "core/checkpoint/hf/families/deepseek_experts.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/latent_attention.h"

namespace ranklab {
namespace {

HfKey unnormalized_key() {
  HfKey key = hf_constant("norm_topk_prob", false);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    set(c, value);
    c.moe.normalize_topk = c.moe.normalize_top1 = false;
  };
  return key;
}

HfKeys deepseek_v2_keys() {
  return together(
      {latent_attention_keys(),
       deepseek_expert_keys(),
       {unnormalized_key(), scaling_factor_key(1.0), hf_constant("topk_method", "greedy"), hf_unused("n_group"),
        hf_unused("topk_group"),  // these two belong to the other method
        hf_constant("mlp_bias", false), hf_constant("scoring_func", "softmax"), hf_constant("moe_layer_freq", 1),
        balancing_key("aux_loss_alpha", LoadBalancing::kSeqAuxLoss), hf_note("seq_aux", true),
        first_dense_layers_key(0, RouterScore::kSoftmax)},
       ending_keys(false)});
}

void check_deepseek_v2(const HfRefusal& r, const ModelConfig& c) {
  check_latent_attention(r, c);
  check_deepseek_experts(r, c);
  r.require_off("--moe-router-norm-topk", c.moe.normalizes());
  r.require(c.moe.group_topk == c.moe.num_groups, "--moe-router-group-topk", std::to_string(c.moe.group_topk),
            std::to_string(c.moe.num_groups) + ": every group");
  r.require_off("--moe-router-enable-expert-bias", c.moe.expert_bias);
  r.require_number("--mtp-num-layers", static_cast<double>(c.mtp_num_layers), 0);
  r.require(c.hf_rope_interleave, "--hf-rope-interleave", "off", "on");
}

}  // namespace

HfFamily deepseek_v2_family() {
  return {.architecture = "DeepseekV2ForCausalLM",
          .model_type = "deepseek_v2",
          .layer_rules = together({llama_norm_rules(), latent_attention_rules(), llama_mlp_rules(), expert_rules(),
                                   shared_expert_rules("mlp.shared_experts")}),
          .keys = deepseek_v2_keys(),
          .has_form =
              [](const ModelConfig& c) {
                return c.mla.enabled() && c.moe.enabled() && c.moe.score == RouterScore::kSoftmax;
              },
          .check = check_deepseek_v2};
}

}  // namespace ranklab
