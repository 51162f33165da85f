// GPT2LMHeadModel: LayerNorm, learned positions, GELU, biases; matrices are stored transposed.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {
namespace {

HfKeys gpt2_keys() {
  const auto inner = [](const ModelConfig& c) { return HfJson(c.ffn_hidden_size); };
  const auto set_inner = [](ModelConfig& c, const HfValue& value) {
    if (!value.is_null()) return value.into(c.ffn_hidden_size);
    if (is_sane(c.hidden_size)) c.ffn_hidden_size = 4 * c.hidden_size;
  };
  const auto activation = [](ModelConfig&, const HfValue& value) {
    const std::string text = value.text();
    if (text != "gelu_new" && text != "gelu_pytorch_tanh") value.refuse("gelu_new");
  };
  return together(
      {{hf_member("vocab_size", RANKLAB_HF(vocab_size)),
        hf_member("n_embd", RANKLAB_HF(hidden_size)),
        hf_member("n_layer", RANKLAB_HF(num_layers)),
        hf_member("n_head", RANKLAB_HF(num_attention_heads)),
        positions_key("n_positions"),
        {"n_inner", inner, set_inner},
        {"activation_function", [](const ModelConfig&) { return HfJson("gelu_new"); }, activation, false, "gelu_new"},
        hf_member("layer_norm_epsilon", RANKLAB_HF(norm_epsilon), 1e-5),
        hf_member("initializer_range", RANKLAB_HF(init_std), 0.02),
        hf_member("resid_pdrop", RANKLAB_HF(dropout), 0.1),
        {"embd_pdrop", [](const ModelConfig& c) { return HfJson(c.dropout); }, [](ModelConfig&, const HfValue&) {}},
        hf_note("attn_pdrop", 0.0),
        hf_constant("scale_attn_weights", true),
        hf_constant("scale_attn_by_inverse_layer_idx", false),
        hf_constant("add_cross_attention", false)},
       ending_keys(true)});
}

void check(const HfRefusal& r, const ModelConfig& c) {
  check_norms_before(r, c);
  check_no_gemma(r, c);
  check_sequential(r, c);
  r.require(c.position == PositionKind::kLearned, "--position-embedding-type", name(c.position),
            "learned_absolute with --normalization LayerNorm");
  r.require(c.activation == ActivationKind::kGelu, "--activation", name(c.activation),
            "gelu with --normalization LayerNorm");
  r.require(c.add_bias, "--add-bias-linear", "off", "on");
  r.require_off("--qk-layernorm", c.qk_norm);
  r.require_number("--window-size", static_cast<double>(c.window_size), 0);
  r.require(c.query_width() == c.hidden_size, "--kv-channels", std::to_string(c.kv_channels),
            "0: --hidden-size / --num-attention-heads");
  r.require(c.query_groups() == c.num_attention_heads, "--num-query-groups", std::to_string(c.query_groups()),
            "0: as many as heads");
  r.require_number("--num-experts", static_cast<double>(c.moe.num_experts), 0);
  r.require_number("--mtp-num-layers without latent attention", static_cast<double>(c.mtp_num_layers), 0);
}

}  // namespace

HfFamily gpt2_family() {
  ModelConfig model;
  model.norm = NormKind::kLayerNorm;
  model.position = PositionKind::kLearned;
  model.activation = ActivationKind::kGelu;
  model.add_bias = true;
  return {.architecture = "GPT2LMHeadModel",
          .model_type = "gpt2",
          .layer_prefix = "transformer.h.",
          .rules = {{"embedding", {"transformer.wte"}},
                    {"position", {"transformer.wpe"}},
                    {"final_norm", {"transformer.ln_f"}},
                    {"head", {"lm_head"}}},
          .layer_rules = {{"attention_norm", {"ln_1"}},
                          {"attention.qkv", {"attn.c_attn"}, HfLayout::kTransposed},
                          {"attention.out", {"attn.c_proj"}, HfLayout::kTransposed},
                          {"mlp_norm", {"ln_2"}},
                          {"mlp.up", {"mlp.c_fc"}, HfLayout::kTransposed},
                          {"mlp.down", {"mlp.c_proj"}, HfLayout::kTransposed}},
          .model = model,
          .keys = gpt2_keys(),
          .has_form = [](const ModelConfig& c) { return c.norm == NormKind::kLayerNorm; },
          .check = check};
}

}  // namespace ranklab
