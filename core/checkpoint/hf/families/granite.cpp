// GraniteForCausalLM (Granite 3; huggingface.co/ibm-granite/granite-3.3-8b-base): Llama's layers whose embeddings,
// branches, scores and logits are each multiplied by a number of the model. GraniteMoeForCausalLM (Granite 3.0 1B and
// 3B): the same with softmax-routed experts, whose weights are normalized; all experts of a layer are one tensor there.
// A model without multipliers is written as one of these classes only if its settings name it (--hf-architecture), as
// they do after import.
#include <cmath>
#include <utility>

#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

constexpr const char *kGranite = "GraniteForCausalLM", *kGraniteMoe = "GraniteMoeForCausalLM";

double reciprocal(double x) { return 1 / x; }
double reciprocal_root(double x) { return 1 / std::sqrt(x); }

// The number near `x` for which `function` is exactly `value`, so that an export writes the value that was read; `x`
// itself if rounding leaves none.
double argument_of(double (*function)(double), double value, double x) {
  constexpr int kFurthest = 4;
  double below = x, above = x;
  for (int step = 0; step <= kFurthest; ++step) {
    if (function(below) == value) return below;
    if (function(above) == value) return above;
    below = std::nextafter(below, 0.0);
    above = std::nextafter(above, HUGE_VAL);
  }
  return x;
}

double positive(const HfValue& value) {
  if (!(value.number() > 0)) value.refuse_damaged("a number above 0");
  return value.number();
}

HfKey score_multiplier() {
  const auto get = [](const ModelConfig& c) {
    const double divisor = c.query_pre_attn_scalar;
    return HfJson(reciprocal_root(divisor > 0 ? divisor : static_cast<double>(c.head_dim())));
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    const double factor = positive(value);
    const bool follows = c.num_attention_heads > 0 && reciprocal_root(static_cast<double>(c.head_dim())) == factor;
    c.query_pre_attn_scalar = follows ? 0 : argument_of(reciprocal_root, factor, 1 / (factor * factor));
  };
  return {"attention_multiplier", get, set, false, 1.0};
}

HfKey logits_divisor() {
  const auto get = [](const ModelConfig& c) { return HfJson(reciprocal(c.logit_scale)); };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    const double divisor = positive(value);
    c.logit_scale = argument_of(reciprocal, divisor, 1 / divisor);
  };
  return {"logits_scaling", get, set, false, 1.0};
}

HfKeys granite_multiplier_keys() {
  return {hf_member("embedding_multiplier", RANKLAB_HF(embedding_multiplier), 1.0),
          hf_member("residual_multiplier", RANKLAB_HF(residual_multiplier), 1.0), score_multiplier(), logits_divisor()};
}

HfKeys granite_keys() {
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6)},
                   granite_multiplier_keys(),
                   linear_bias_keys(),
                   ending_keys(false)});
}

bool has_granite_form(const ModelConfig& c) {
  return c.norm == NormKind::kRmsNorm &&
         (c.embedding_multiplier != 1 || c.residual_multiplier != 1 || c.logit_scale != 1);
}

void check_granite(const HfRefusal& r, const ModelConfig& c) {
  ModelConfig plain = c;
  plain.query_pre_attn_scalar = 0;
  check_llama_layers(r, plain);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
}

HfKeys granite_moe_keys() {
  HfKey experts = experts_key("num_local_experts");
  experts.required = false;
  experts.absent = 8;
  return together({transformer_keys(),
                   {expert_width_key(), head_dim_key(), hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6),
                    hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false), std::move(experts),
                    normalized_topk_key(2), balancing_key("router_aux_loss_coef", LoadBalancing::kAuxLoss)},
                   granite_multiplier_keys(),
                   ending_keys(false)});
}

void check_granite_moe(const HfRefusal& r, const ModelConfig& c) {
  check_granite(r, c);
  check_softmax_experts(r, c);
  check_routed_experts_alone(r, c.moe);
}

HfRules granite_expert_rules() {
  return {{"mlp.router", {"block_sparse_moe.router.layer"}},
          {"mlp.experts.*.gate_up", {"block_sparse_moe.input_linear"}},
          {"mlp.experts.*.down", {"block_sparse_moe.output_linear"}}};
}

}  // namespace

HfFamily granite_family() {
  ModelConfig model;
  model.hf_architecture = kGranite;
  return {.architecture = kGranite,
          .model_type = "granite",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .model = model,
          .keys = granite_keys(),
          .has_form = [](const ModelConfig& c) { return has_granite_form(c) || c.hf_architecture == kGranite; },
          .check = check_granite};
}

HfFamily granite_moe_family() {
  ModelConfig model;
  model.hf_architecture = kGraniteMoe;
  return {.architecture = kGraniteMoe,
          .model_type = "granitemoe",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), granite_expert_rules()}),
          .model = model,
          .keys = granite_moe_keys(),
          .has_form =
              [](const ModelConfig& c) {
                return c.moe.enabled() && (has_granite_form(c) || c.hf_architecture == kGraniteMoe);
              },
          .check = check_granite_moe};
}

}  // namespace ranklab
