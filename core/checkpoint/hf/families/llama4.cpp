// Llama4ForCausalLM (Llama 4, the text model; huggingface.co/meta-llama/Llama-4-Scout-17B-16E): local layers with
// rotary positions, whose tokens attend within chunks, and between them layers without positions, whose queries grow
// with the logarithm of their position. All or some layers have experts: one routed expert per token, which reads the
// token multiplied by its weight, and a shared one. All experts of a layer are one tensor there, with the input
// dimension first; rotated rows of a head are adjacent.
#include <vector>

#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"
#include "core/spec/layer_pattern.h"

namespace ranklab {
namespace {

constexpr int64_t kNoExperts = 16;  // the number in files of models without experts, because the class requires one

HfKey widths_of_experts() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    c.moe.ffn_hidden_size = c.moe.shared_ffn_hidden_size = value.integer();
  };
  return {"intermediate_size", [](const ModelConfig& c) { return HfJson(c.expert_ffn()); }, set, false, 8192};
}

HfKey llama4_experts() {
  HfKey key = experts_key("num_local_experts");
  key.get = [](const ModelConfig& c) { return HfJson(c.moe.enabled() ? c.moe.num_experts : kNoExperts); };
  key.required = false;
  key.absent = kNoExperts;
  return key;
}

HfKey layers_with_experts() {
  const auto get = [](const ModelConfig& c) {
    HfJson layers = HfJson::array();
    for (int64_t layer = 0; layer < c.num_layers; ++layer)
      if (c.is_moe_layer(layer)) layers.push_back(layer);
    return layers;
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (c.num_layers < 1 || c.num_layers > kMostLayers) return;  // validate() refuses it
    set_expert_layers(c, value.is_null() ? layers_of_interval(c) : listed_layers(c, value));
  };
  return {"moe_layers", get, set};
}

// If there is no list, or it is empty, the interval applies.
HfKey rotary_layers() {
  HfKey key = rotary_layers_key();
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    if (value.json().is_array() && value.json().empty()) return;
    set(c, value);
  };
  return key;
}

// Without a list, the layers with rotary positions have chunks.
HfKey chunked_layers() {
  HfKey key = local_layers_key({"chunked_attention", &ModelConfig::attention_chunk, "attention_chunk_size"}, true);
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    if (c.num_layers < 1 || c.num_layers > kMostLayers) return;  // validate() refuses it
    if (!value.is_null()) {
      if (value.json().is_array() && static_cast<int64_t>(value.json().size()) != c.num_layers)
        value.refuse_damaged("a kind of attention for every layer");
      return set(c, value);
    }
    std::vector<bool> rotary;
    for (int64_t layer = 0; layer < c.num_layers; ++layer) rotary.push_back(c.has_rope(layer));
    if (c.attention_chunk > 0) set_local_layers(c, &ModelConfig::attention_chunk, rotary);
  };
  return key;
}

HfKey tunes_temperature() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    // Published files contain a number for how it was tuned, which no class reads.
    const bool on = value.json().is_boolean() ? value.boolean() : value.integer() != 0;
    c.query_temperature_scale = on ? 0.1 : 0.0;
  };
  return {"attn_temperature_tuning", [](const ModelConfig& c) { return HfJson(c.query_temperature_scale > 0); }, set,
          false, true};
}

HfKey temperature_scale() {
  const auto get = [](const ModelConfig& c) {
    return HfJson(c.query_temperature_scale > 0 ? c.query_temperature_scale : 0.1);
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (c.query_temperature_scale > 0) c.query_temperature_scale = value.number();
  };
  return {"attn_scale", get, set, false, 0.1};
}

HfKeys llama4_keys() {
  HfKeys keys = transformer_keys();
  // The class neither adds a balancing loss nor adds noise to the router.
  for (const char* key : {"output_router_logits", "router_aux_loss_coef", "router_jitter_noise", "for_llm_compressor"})
    keys.push_back({key, {}, [](ModelConfig&, const HfValue&) {}});
  return together(
      {keys,
       {widths_of_experts(), hf_member("intermediate_size_mlp", RANKLAB_HF(ffn_hidden_size), 16384), head_dim_key(128),
        hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
        hf_member("attention_bias", RANKLAB_HF(add_attention_bias), false), llama4_experts(),
        hf_constant("num_experts_per_tok", 1), expert_interval_key("interleave_moe_layer_step"), layers_with_experts(),
        hf_member("use_qk_norm", RANKLAB_HF(qk_l2_norm), true), rotary_interval_key(), rotary_layers(),
        optional_size_key("attention_chunk_size", &ModelConfig::attention_chunk, 8192), chunked_layers(),
        tunes_temperature(), temperature_scale(), hf_member("floor_scale", RANKLAB_HF(query_temperature_floor), 8192)},
       ending_keys(false)});
}

void check_llama4_experts(const HfRefusal& r, const ModelConfig& c) {
  const MoeConfig& m = c.moe;
  r.require(m.score == RouterScore::kSigmoid, "--moe-router-score-function", "softmax", "sigmoid");
  r.require_number("--moe-router-topk", static_cast<double>(m.topk), 1);
  r.require(m.weigh_inputs, "--moe-apply-probs-on-input", "off", "on");
  r.require(!m.normalizes(), "--moe-router-norm-top1", "on", "off");
  r.require_number("--moe-router-topk-scaling-factor", m.scaling_factor, 1);
  r.require_number("--moe-router-num-groups", static_cast<double>(m.num_groups), 1);
  r.require_off("--moe-router-enable-expert-bias", m.expert_bias);
  r.require(m.shared_ffn_hidden_size == c.expert_ffn(), "--moe-shared-expert-intermediate-size",
            std::to_string(m.shared_ffn_hidden_size), "--moe-ffn-hidden-size " + std::to_string(c.expert_ffn()));
  r.require_off("--moe-shared-expert-gate", m.shared_gate);
  check_routing(r, m);
}

void check_llama4(const HfRefusal& r, const ModelConfig& c) {
  ModelConfig rotary = c;
  rotary.rope_layers = {};
  r.require(!c.mla.enabled(), "--kv-lora-rank", std::to_string(c.mla.kv_lora_rank), "0");
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  check_rotary_layers(r, rotary);
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  if (c.moe.enabled()) check_llama4_experts(r, c);
}

HfRules feed_forward_rules() {
  return {{"mlp.gate_up", {"feed_forward.gate_proj", "feed_forward.up_proj"}},
          {"mlp.down", {"feed_forward.down_proj"}},
          {"mlp.router", {"feed_forward.router"}},
          {"mlp.experts.*.gate_up", {"feed_forward.experts.gate_up_proj"}, HfLayout::kTransposed, HfNaming::kBare},
          {"mlp.experts.*.down", {"feed_forward.experts.down_proj"}, HfLayout::kTransposed, HfNaming::kBare}};
}

}  // namespace

HfFamily llama4_family() {
  ModelConfig model;
  model.moe = {.topk = 1, .score = RouterScore::kSigmoid, .normalize_topk = false, .weigh_inputs = true};
  model.rope_theta = 500000;
  return {.architecture = "Llama4ForCausalLM",
          .model_type = "llama4_text",
          .layer_rules = together({llama_norm_rules(), neighbours_attention_rules(), feed_forward_rules(),
                                   shared_expert_rules("feed_forward.shared_expert")}),
          .model = model,
          .keys = llama4_keys(),
          .has_form =
              [](const ModelConfig& c) {
                return c.attention_chunk > 0 || c.qk_l2_norm || c.query_temperature_scale > 0 ||
                       (c.moe.enabled() && c.moe.weigh_inputs);
              },
          .check = check_llama4};
}

}  // namespace ranklab
