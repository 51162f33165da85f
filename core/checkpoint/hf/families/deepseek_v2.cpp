// DeepseekV2ForCausalLM (arXiv 2405.04434; DeepSeek-V2 and V2-Lite): latent attention, YaRN, and softmax-routed
// experts, whose weights are not normalized. V2 limits a token to the groups with the best single experts, V2-Lite to
// none.
#include "core/checkpoint/hf/families/deepseek_experts.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/latent_attention.h"

namespace ranklab {
namespace {

constexpr const char* kInGroups = "group_limited_greedy";

HfKey unnormalized_key() {
  HfKey key = hf_constant("norm_topk_prob", false);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    set(c, value);
    c.moe.normalize_topk = c.moe.normalize_top1 = false;
  };
  return key;
}

// The groups of a file count only with the method that reads them.
HfKeys method_keys() {
  HfKeys keys = group_keys();
  for (HfKey& key : keys) {
    key.required = false;
    key.absent = 1;
    key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
      if (!value.is_null()) set(c, value);
    };
  }
  keys.push_back({"topk_method",
                  [](const ModelConfig& c) { return HfJson(c.moe.limits_groups() ? kInGroups : "greedy"); },
                  [](ModelConfig& c, const HfValue& value) {
                    c.moe.group_best = 1;
                    if (value.text() == kInGroups) return;
                    if (value.text() != "greedy") value.refuse("greedy or group_limited_greedy");
                    c.moe.num_groups = c.moe.group_topk = 1;
                    c.moe.group_best = MoeConfig().group_best;
                  },
                  false, "greedy"});
  return keys;
}

HfKeys deepseek_v2_keys() {
  return together({latent_attention_keys(),
                   deepseek_expert_keys(),
                   method_keys(),
                   {unnormalized_key(), scaling_factor_key(1.0), hf_constant("mlp_bias", false),
                    hf_constant("scoring_func", "softmax"), hf_constant("moe_layer_freq", 1),
                    balancing_key("aux_loss_alpha", LoadBalancing::kSeqAuxLoss), hf_note("seq_aux", true),
                    first_dense_layers_key(0, RouterScore::kSoftmax)},
                   ending_keys(false)});
}

void check_deepseek_v2(const HfRefusal& r, const ModelConfig& c) {
  check_latent_attention(r, c);
  check_deepseek_experts(r, c);
  r.require_off("--moe-router-norm-topk", c.moe.normalizes());
  r.require(c.moe.group_best == 1 || !c.moe.limits_groups(), "--moe-router-group-best",
            std::to_string(c.moe.group_best), "1");
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
