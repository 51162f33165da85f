#include "core/checkpoint/hf/family.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {

// The order matters: a family that fits more models comes after those that fit fewer.
const std::vector<HfFamily>& hf_families() {
  static const std::vector<HfFamily> kFamilies = {
      nemotron_h_family(),  qwen3_5_moe_family(),  qwen3_next_family(),  qwen3_5_family(),   llama4_family(),
      deepseek_v2_family(), deepseek_v3_family(),  glm4_moe_family(),    gpt_oss_family(),   gemma3_family(),
      glm4_family(),        gemma2_family(),       olmo3_family(),       olmo2_family(),     nemotron_family(),
      phi_family(),         gpt_neox_family(),     cohere2_family(),     cohere_family(),    stablelm_family(),
      gpt2_family(),        ernie4_5_moe_family(), granite_moe_family(), qwen3_moe_family(), qwen2_moe_family(),
      mixtral_family(),     seed_oss_family(),     ernie4_5_family(),    granite_family(),   qwen3_family(),
      qwen2_family(),       smollm3_family(),      phi3_family(),        mistral_family(),   llama_family()};
  return kFamilies;
}

const HfFamily& hf_family_named(const std::string& architecture, const std::string& path) {
  std::vector<std::string> names;
  for (const HfFamily& family : hf_families()) {
    if (family.architecture == architecture) return family;
    names.push_back(family.architecture);
  }
  refuse_hf_feature(path, "ranklab has no such model", "architecture " + quote(printable(architecture)),
                    "one of " + join(names, ", "));
}

const HfFamily& hf_family(const ModelConfig& config) {
  const auto has_form = [&](const HfFamily& family) { return family.has_form(config); };
  const HfFamily& family = *std::ranges::find_if(hf_families(), has_form);
  const HfRefusal refusal(family.architecture);
  refusal.require(config.softmax == family.model.softmax, "--softmax-type",
                  config.softmax == SoftmaxKind::kVanilla ? "vanilla" : "with sinks",
                  family.model.softmax == SoftmaxKind::kVanilla ? "vanilla" : "learnable");
  refusal.require(!config.moe.enabled() || config.moe.router_bias == family.model.moe.router_bias, "--add-router-bias",
                  config.moe.router_bias ? "on" : "off", family.model.moe.router_bias ? "on" : "off");
  refusal.require(!config.linear.enabled() || family.model.linear.enabled(), "--linear-attention-type",
                  "gated_delta_net", "none");
  refusal.require(config.attention_output_gate == family.model.attention_output_gate, "--attention-output-gate",
                  config.attention_output_gate ? "on" : "off", family.model.attention_output_gate ? "on" : "off");
  const auto has_key = [&](const char* key) {
    return std::ranges::find(family.keys, key, &HfKey::key) != family.keys.end();
  };
  if (!has_key("embedding_multiplier"))
    refusal.require_number("--embedding-multiplier", config.embedding_multiplier, 1);
  if (!has_key("residual_multiplier")) refusal.require_number("--residual-multiplier", config.residual_multiplier, 1);
  if (!has_key("logits_scaling") && !has_key("logit_scale"))
    refusal.require_number("--logit-scale", config.logit_scale, 1);
  refusal.require(config.norm == NormKind::kRmsNorm || config.norm_bias == family.model.norm_bias, "--layernorm-bias",
                  config.norm_bias ? "on" : "off", family.model.norm_bias ? "on" : "off");
  const bool has_latent =
      std::ranges::find(family.layer_rules, "mlp.latent_down", &HfRule::ours) != family.layer_rules.end();
  if (!has_latent) refusal.require_number("--moe-latent-size", static_cast<double>(config.moe.latent_size), 0);
  refusal.require_off("--mtp-use-repeated-layer with --mtp-num-layers above 1", config.repeats_mtp());
  family.check(refusal, config);
  return family;
}

}  // namespace ranklab
