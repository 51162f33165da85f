#include "core/checkpoint/hf/families/deepseek_experts.h"

#include <utility>

namespace ranklab {
namespace {

// Values of the expert keys for a model without experts, because the classes require numbers.
MoeConfig experts_of(const ModelConfig& c) {
  if (c.moe.enabled()) return c.moe;
  return {
      .num_experts = 2, .topk = 1, .ffn_hidden_size = c.ffn_hidden_size, .shared_ffn_hidden_size = c.ffn_hidden_size};
}

int64_t expert_ffn_of(const ModelConfig& c) { return c.moe.enabled() ? c.expert_ffn() : c.ffn_hidden_size; }

HfKey routed_experts() {
  HfKey key = experts_key("n_routed_experts");
  key.get = [](const ModelConfig& c) { return HfJson(experts_of(c).num_experts); };
  return key;
}

HfKey normalization() {
  HfKey key = normalization_key(true);
  key.get = [](const ModelConfig& c) { return HfJson(c.moe.enabled() && c.moe.normalizes()); };
  return key;
}

// Layers with an index below this are dense: here all of them.
int64_t all_layers(const ModelConfig& c) { return c.num_layers + c.mtp_num_layers; }

int64_t layers_before_experts(const ModelConfig& c) {
  int64_t layer = 0;
  while (layer < c.num_layers && !c.is_moe_layer(layer)) ++layer;
  return layer;
}

}  // namespace

HfRules prediction_rules() {
  return {{"enorm", {"enorm"}}, {"hnorm", {"hnorm"}}, {"proj", {"eh_proj"}}, {"norm", {"shared_head.norm"}}};
}

HfKey shared_experts_key(const std::string& key, HfJson absent) {
  const auto get = [](const ModelConfig& c) { return HfJson(experts_of(c).shared_ffn_hidden_size / expert_ffn_of(c)); };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    const int64_t count = value.is_null() ? 0 : value.integer();
    if (count < 0 || count > 1024 || !is_sane(c.expert_ffn())) value.refuse_damaged("at most 1024");
    c.moe.shared_ffn_hidden_size = count * c.expert_ffn();
  };
  return {key, get, set, false, std::move(absent)};
}

HfKeys deepseek_expert_keys() {
  return {routed_experts(),
          {"num_experts_per_tok", [](const ModelConfig& c) { return HfJson(experts_of(c).topk); },
           [](ModelConfig& c, const HfValue& value) { c.moe.topk = value.integer(); }, true},
          {"moe_intermediate_size", [](const ModelConfig& c) { return HfJson(expert_ffn_of(c)); },
           [](ModelConfig& c, const HfValue& value) { c.moe.ffn_hidden_size = value.integer(); }, true},
          shared_experts_key("n_shared_experts", {})};
}

HfKey scaling_factor_key(double absent) {
  HfKey key = hf_member("routed_scaling_factor", RANKLAB_HF(moe.scaling_factor), absent);
  key.get = [](const ModelConfig& c) { return HfJson(experts_of(c).scaling_factor); };
  return key;
}

HfKeys group_keys() {
  return {{"n_group", [](const ModelConfig& c) { return HfJson(experts_of(c).num_groups); },
           [](ModelConfig& c, const HfValue& value) { c.moe.num_groups = value.integer(); }, true},
          {"topk_group", [](const ModelConfig& c) { return HfJson(experts_of(c).group_topk); },
           [](ModelConfig& c, const HfValue& value) { c.moe.group_topk = value.integer(); }, true}};
}

HfKeys sigmoid_router_keys(double scaling) {
  return together({deepseek_expert_keys(), group_keys(), {normalization(), scaling_factor_key(scaling)}});
}

HfKey first_dense_layers_key(int64_t absent, RouterScore score) {
  const auto get = [](const ModelConfig& c) {
    return HfJson(c.moe.enabled() ? layers_before_experts(c) : all_layers(c));
  };
  const auto set = [score](ModelConfig& c, const HfValue& value) {
    c.moe.first_dense_layers = value.integer();
    c.moe.score = score;
    c.moe.expert_bias = score == RouterScore::kSigmoid;
    const bool sane = is_sane(c.num_layers) && is_sane(c.mtp_num_layers);  // validate() refuses others
    if (sane && c.moe.first_dense_layers >= all_layers(c)) c.moe = {};
  };
  return {"first_k_dense_replace", get, set, false, absent};
}

void check_deepseek_experts(const HfRefusal& r, const ModelConfig& c) {
  const MoeConfig& m = c.moe;
  r.require(c.moe_layer_count() == c.num_layers - layers_before_experts(c), "--moe-layer-freq",
            layer_pattern_text(m.layers), "1: experts in all layers but the first ones");
  r.require(m.shared_ffn_hidden_size > 0 && m.shared_ffn_hidden_size % c.expert_ffn() == 0,
            "--moe-shared-expert-intermediate-size", std::to_string(m.shared_ffn_hidden_size),
            "a multiple of --moe-ffn-hidden-size " + std::to_string(c.expert_ffn()));
  r.require_off("--moe-shared-expert-gate", m.shared_gate);
  check_routing(r, m);
}

void check_sigmoid_experts(const HfRefusal& r, const ModelConfig& c) {
  if (!c.moe.enabled()) return;
  const MoeConfig& m = c.moe;
  r.require(m.score == RouterScore::kSigmoid, "--moe-router-score-function", "softmax", "sigmoid");
  check_group_scores(r, m);
  check_deepseek_experts(r, c);
}

void check_group_scores(const HfRefusal& r, const MoeConfig& m) {
  r.require(m.num_experts / m.num_groups >= 2, "--moe-router-num-groups", std::to_string(m.num_groups),
            "groups of two experts or more");
  r.require(m.group_best == 2 || !m.limits_groups(), "--moe-router-group-best", std::to_string(m.group_best), "2");
}

}  // namespace ranklab
