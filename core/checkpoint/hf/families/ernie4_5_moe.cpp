// Ernie4_5_MoeForCausalLM (ERNIE 4.5 with experts; huggingface.co/baidu/ERNIE-4.5-21B-A3B-PT): softmax-routed experts,
// chosen with a balancing bias, whose weights are normalized, and shared experts, in one run of layers. Rotated rows of
// a head are adjacent. Tensors of MTP modules are skipped, as the class does.
#include <utility>

#include "core/checkpoint/hf/families/deepseek_experts.h"
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

// The first and the last layer with experts.
std::pair<int64_t, int64_t> ends_of_run(const ModelConfig& c) {
  int64_t first = 0, last = c.num_layers - 1;
  while (first < last && !c.is_moe_layer(first)) ++first;
  while (first < last && !c.is_moe_layer(last)) --last;
  return {first, last};
}

// Read in this order.
HfKeys run_keys() {
  const auto set_end = [](ModelConfig& c, const HfValue& value) {
    if (c.num_layers < 1 || c.num_layers > kMostLayers) return;  // validate() refuses it
    const int64_t first = c.moe.first_dense_layers, last = value.integer() == -1 ? c.num_layers - 1 : value.integer();
    std::vector<bool> layers;
    for (int64_t layer = 0; layer < c.num_layers; ++layer) layers.push_back(layer >= first && layer <= last);
    set_expert_layers(c, layers);
    if (!c.moe.enabled()) value.refuse("a run with one layer with experts at least");
  };
  return {
      {"moe_layer_start_index", [](const ModelConfig& c) { return HfJson(ends_of_run(c).first); },
       [](ModelConfig& c, const HfValue& value) { c.moe.first_dense_layers = value.integer(); }, false, 1},
      {"moe_layer_end_index", [](const ModelConfig& c) { return HfJson(ends_of_run(c).second); }, set_end, false, -1},
      hf_constant("moe_layer_interval", 1)};
}

HfKeys ernie4_5_moe_keys() {
  HfKey experts = experts_key("moe_num_experts"), topk = normalized_topk_key(6);
  topk.key = "moe_k";
  HfKey width = hf_count("moe_intermediate_size", RANKLAB_HF(moe.ffn_hidden_size));
  width.get = [](const ModelConfig& c) { return HfJson(c.expert_ffn()); };
  return together(
      {transformer_keys(),
       {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
        hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5), hf_constant("use_bias", false), std::move(experts),
        std::move(topk), std::move(width), shared_experts_key("moe_num_shared_experts", 2),
        hf_constant("moe_norm_min", 1e-12), balancing_key("router_aux_loss_coef", LoadBalancing::kAuxLoss)},
       run_keys(),
       {hf_unused("moe_capacity"), hf_unused("moe_gate"), hf_unused("moe_use_aux_free"),
        hf_unused("num_nextn_predict_layers"), pad_token_key(nullptr)},
       ending_keys(true)});
}

void check_ernie4_5_moe(const HfRefusal& r, const ModelConfig& c) {
  const MoeConfig& m = c.moe;
  check_llama_layers(r, c);
  r.require_off("--add-bias-linear, --add-qkv-bias or --add-attention-bias", c.has_qkv_bias());
  MoeConfig unbiased = m;
  unbiased.expert_bias = false;
  check_plain_softmax_routing(r, unbiased);
  r.require(m.normalizes(), "--moe-router-norm-topk", "off", "on");
  const auto [first, last] = ends_of_run(c);
  r.require(c.moe_layer_count() == last - first + 1, "--moe-layer-freq", layer_pattern_text(m.layers),
            "experts in one run of layers");
  r.require(m.shared_ffn_hidden_size % c.expert_ffn() == 0, "--moe-shared-expert-intermediate-size",
            std::to_string(m.shared_ffn_hidden_size),
            "a multiple of --moe-ffn-hidden-size " + std::to_string(c.expert_ffn()));
  r.require_off("--moe-shared-expert-gate", m.shared_gate);
}

}  // namespace

HfFamily ernie4_5_moe_family() {
  ModelConfig model;
  model.rope_theta = 500000;
  model.moe.expert_bias = true;
  return {.architecture = "Ernie4_5_MoeForCausalLM",
          .model_type = "ernie4_5_moe",
          .layer_rules = together({llama_norm_rules(), neighbours_attention_rules(), llama_mlp_rules(), expert_rules(),
                                   shared_expert_rules("mlp.shared_experts")}),
          .model = model,
          .keys = ernie4_5_moe_keys(),
          .balancing_bias = "mlp.moe_statics.e_score_correction_bias",
          .balancing_bias_is_row = true,
          .passed_over = "model.mtp",
          .has_form =
              [](const ModelConfig& c) {
                return c.moe.enabled() && c.moe.score == RouterScore::kSoftmax && c.moe.expert_bias;
              },
          .check = check_ernie4_5_moe};
}

}  // namespace ranklab
