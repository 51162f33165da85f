// NemotronHForCausalLM (Nemotron-H, arXiv 2504.03624; Nemotron 3 Nano), with the names of the published weights, which
// transformers reads: each layer has one mixer, which is Mamba-2, attention without positions, an MLP, or
// sigmoid-routed experts, the latter two with squared ReLU.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/checkpoint/hf/families/deepseek_experts.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {
namespace {

void set_pattern(ModelConfig& c, std::string pattern) {
  c.num_layers = static_cast<int64_t>(pattern.size());
  c.hybrid_pattern = std::move(pattern);
}

bool has_experts(const ModelConfig& c) { return c.pattern_has(LayerMixer::kExperts); }

HfKey pattern_key() {
  const auto get = [](const ModelConfig& c) {
    std::string pattern;
    for (int64_t layer = 0; layer < c.num_layers; ++layer)
      pattern += c.hybrid_pattern[static_cast<size_t>(layer) % c.hybrid_pattern.size()];
    return HfJson(pattern);
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    const std::string pattern = value.text();
    if (pattern.empty() || pattern.find_first_not_of(kMixerLetters) != std::string::npos)
      value.refuse("letters M, *, - and E, one for each layer");
    set_pattern(c, pattern);
  };
  return {"hybrid_override_pattern", get, set};
}

// The list that replaces it in newer files, under the names and with the words of two versions; read after it.
HfKey mixers_key() {
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    constexpr std::pair<const char*, LayerMixer> kWords[] = {{"mamba", LayerMixer::kMamba},
                                                             {"linear_attention", LayerMixer::kMamba},
                                                             {"attention", LayerMixer::kAttention},
                                                             {"full_attention", LayerMixer::kAttention},
                                                             {"mlp", LayerMixer::kMlp},
                                                             {"moe", LayerMixer::kExperts}};
    if (!value.json().is_array() || value.json().empty()) value.refuse_damaged("the mixer of each layer");
    std::string pattern;
    for (const HfJson& one : value.json()) {
      const auto word = std::ranges::find_if(kWords, [&](const auto& row) { return one == row.first; });
      if (word == std::end(kWords)) value.refuse("linear_attention, full_attention, mlp or moe for each layer");
      pattern += static_cast<char>(word->second);
    }
    set_pattern(c, pattern);
  };
  return {"layers_block_type", {}, set, false, {}, "layer_types"};
}

// Written for readers that do not know patterns, and ignored when read, because the pattern has the number of layers.
// In published files the two are equal.
HfKey layers_key() {
  return {"num_hidden_layers", [](const ModelConfig& c) { return HfJson(c.num_layers); },
          [](ModelConfig&, const HfValue&) {}};
}

HfKey shared_width() {
  HfKey key = hf_member("moe_shared_expert_intermediate_size", RANKLAB_HF(moe.shared_ffn_hidden_size), 7688);
  key.get = [](const ModelConfig& c) { return c.moe.enabled() ? HfJson(c.moe.shared_ffn_hidden_size) : not_written(); };
  key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
    if (c.moe.enabled()) set(c, value);
  };
  return key;
}

// Files of models without experts contain the class's default numbers of experts, or none. The class does not read the
// number of shared experts.
HfKeys nemotron_h_expert_keys() {
  HfKeys keys = sigmoid_router_keys(1.0);
  std::erase_if(keys, [](const HfKey& key) { return key.key == "n_shared_experts"; });
  for (HfKey& key : keys) {
    key.required = false;
    key.get = [get = key.get](const ModelConfig& c) { return c.moe.enabled() ? get(c) : not_written(); };
    key.set = [set = key.set](ModelConfig& c, const HfValue& value) {
      if (!has_experts(c) || value.is_null()) return;
      c.moe.score = RouterScore::kSigmoid;
      c.moe.expert_bias = true;
      set(c, value);
    };
  }
  keys.push_back(shared_width());
  keys.push_back(hf_unused("n_shared_experts"));
  return keys;
}

// null: experts read the hidden state itself.
HfKey latent_size() {
  const auto get = [](const ModelConfig& c) {
    if (!c.moe.enabled()) return not_written();
    return c.moe.latent_size > 0 ? HfJson(c.moe.latent_size) : HfJson();
  };
  const auto set = [](ModelConfig& c, const HfValue& value) {
    if (value.is_null()) return;
    if (value.integer() < 1) value.refuse_damaged("null, or 1 or more");
    if (has_experts(c)) c.moe.latent_size = value.integer();
  };
  return {"moe_latent_size", get, set};
}

HfKey mamba_heads() {
  HfKey key = hf_count("mamba_num_heads", RANKLAB_HF(mamba.num_heads));
  key.get = [](const ModelConfig& c) { return HfJson(c.mamba_heads()); };
  key.required = false;
  key.absent = 128;
  return key;
}

// Keys that the class does not read, or only to initialize a new model.
HfKeys passed_over_keys() {
  HfKeys keys = {hf_note("chunk_size", 128)};
  for (const char* key : {"expand", "time_step_limit", "time_step_max", "time_step_floor", "mamba_ssm_cache_dtype",
                          "num_logits_to_keep", "use_mamba_kernels", "residual_in_fp32", "rescale_prenorm_residual",
                          "moe_shared_expert_overlap", "mtp_layers_block_type", "hidden_dropout", "rms_norm_eps"})
    keys.push_back({key, {}, [](ModelConfig&, const HfValue&) {}});
  return keys;
}

HfKeys nemotron_h_keys() {
  HfKeys keys = {hf_member("vocab_size", RANKLAB_HF(vocab_size)), hf_member("hidden_size", RANKLAB_HF(hidden_size)),
                 pattern_key(), mixers_key(), layers_key()};
  // The sizes of any transformer, without those that are handled above.
  for (const HfKey& key : transformer_keys("mlp_hidden_act", "relu2"))
    if (key.key != "vocab_size" && key.key != "hidden_size" && key.key != "num_hidden_layers") keys.push_back(key);
  HfKey head_dim = head_dim_key(128);
  head_dim.other = "attention_head_dim";
  return together(
      {keys,
       {std::move(head_dim), hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
        hf_member("layer_norm_epsilon", RANKLAB_HF(norm_epsilon), 1e-5), mamba_heads(),
        hf_member("mamba_head_dim", RANKLAB_HF(mamba.head_dim), 64),
        hf_member("ssm_state_size", RANKLAB_HF(mamba.state_dim), 128),
        hf_member("n_groups", RANKLAB_HF(mamba.num_groups), 8),
        hf_member("conv_kernel", RANKLAB_HF(mamba.conv_kernel), 4),
        hf_member("time_step_min", RANKLAB_HF(mamba.min_step), 1e-3), hf_constant("mamba_hidden_act", "silu"),
        hf_constant("use_conv_bias", true), hf_constant("use_bias", false), hf_constant("mlp_bias", false),
        hf_constant("attention_bias", false), hf_constant("mamba_proj_bias", false), latent_size(),
        hf_constant("num_nextn_predict_layers", 0)},
       nemotron_h_expert_keys(),
       passed_over_keys(),
       ending_keys(false)});
}

void check_nemotron_h(const HfRefusal& r, const ModelConfig& c) {
  check_sequential(r, c);
  check_norms_before(r, c);
  check_no_gemma(r, c);
  r.require(c.norm == NormKind::kRmsNorm, "--normalization", "LayerNorm", "RMSNorm");
  r.require(c.activation == ActivationKind::kSquaredRelu, "--activation", name(c.activation), "squared_relu");
  r.require(c.position == PositionKind::kNone, "--position-embedding-type", name(c.position), "none");
  r.require_off("--add-bias-linear", c.add_bias);
  r.require_off("--add-qkv-bias", c.add_qkv_bias);
  r.require_off("--add-attention-bias", c.add_attention_bias);
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_number("--kv-lora-rank", static_cast<double>(c.mla.kv_lora_rank), 0);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  r.require_number("--attention-chunk-size", static_cast<double>(c.attention_chunk), 0);
  r.require_number("--query-temperature-scale", c.query_temperature_scale, 0);
  r.require_number("--mtp-num-layers", static_cast<double>(c.mtp_num_layers), 0);
  if (!c.moe.enabled()) return;
  r.require(c.moe.score == RouterScore::kSigmoid, "--moe-router-score-function", "softmax", "sigmoid");
  check_group_scores(r, c.moe);
  r.require(c.moe.shared_ffn_hidden_size > 0, "--moe-shared-expert-intermediate-size", "0", "1 or more");
  r.require_off("--moe-shared-expert-gate", c.moe.shared_gate);
  check_routing(r, c.moe);
}

}  // namespace

HfFamily nemotron_h_family() {
  ModelConfig model;
  model.hybrid_pattern = "ME*-";
  model.position = PositionKind::kNone;
  model.activation = ActivationKind::kSquaredRelu;
  return {.architecture = "NemotronHForCausalLM",
          .model_type = "nemotron_h",
          .layer_prefix = "backbone.layers.",
          .rules = {{"embedding", {"backbone.embeddings"}}, {"final_norm", {"backbone.norm_f"}}, {"head", {"lm_head"}}},
          .layer_rules = {{"attention_norm", {"norm"}},
                          {"mlp_norm", {"norm"}},
                          {"attention.in_proj", {"mixer.in_proj"}},
                          {"attention.conv", {"mixer.conv1d"}},
                          {"attention.a_log", {"mixer.A_log"}, HfLayout::kSame, HfNaming::kBare},
                          {"attention.dt_bias", {"mixer.dt_bias"}, HfLayout::kSame, HfNaming::kBare},
                          {"attention.d", {"mixer.D"}, HfLayout::kSame, HfNaming::kBare},
                          {"attention.out_norm", {"mixer.norm"}},
                          {"attention.out_proj", {"mixer.out_proj"}},
                          {"attention.qkv", {"mixer.q_proj", "mixer.k_proj", "mixer.v_proj"}},
                          {"attention.out", {"mixer.o_proj"}},
                          {"mlp.up", {"mixer.up_proj"}},
                          {"mlp.down", {"mixer.down_proj"}},
                          {"mlp.router", {"mixer.gate"}},
                          {"mlp.latent_down", {"mixer.fc1_latent_proj"}},
                          {"mlp.latent_up", {"mixer.fc2_latent_proj"}},
                          {"mlp.shared.up", {"mixer.shared_experts.up_proj"}},
                          {"mlp.shared.down", {"mixer.shared_experts.down_proj"}},
                          {"mlp.experts.*.up", {"mixer.experts.*.up_proj"}},
                          {"mlp.experts.*.down", {"mixer.experts.*.down_proj"}}},
          .model = model,
          .keys = nemotron_h_keys(),
          .balancing_bias = "mixer.gate.e_score_correction_bias",
          .passed_over = "mtp.",
          .has_form = [](const ModelConfig& c) { return c.is_hybrid(); },
          .check = check_nemotron_h};
}

}  // namespace ranklab
