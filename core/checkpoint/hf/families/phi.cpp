// PhiForCausalLM (Phi-1, arXiv 2306.11644; Phi-1.5 and Phi-2): LayerNorm, partial rotary embeddings, GELU, biases
// everywhere including the head; attention and MLP read the same residual stream through one norm.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/gelu.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {
namespace {

HfKeys phi_keys() {
  return together(
      {transformer_keys(nullptr),
       {gelu_key("gelu_new"),
        hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
        hf_member("layer_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
        hf_constant("qk_layernorm", false),
        hf_member("resid_pdrop", RANKLAB_HF(dropout), 0.0),
        {"embd_pdrop", [](const ModelConfig& c) { return HfJson(c.dropout); }, [](ModelConfig&, const HfValue&) {}},
        {"partial_rotary_factor", [](const ModelConfig& c) { return HfJson(c.rotary_percent); },
         [](ModelConfig&, const HfValue&) {}}},
       ending_keys(false)});
}

void check_phi(const HfRefusal& r, const ModelConfig& c) {
  check_gelu_layers(r, c);
  r.require(c.add_head_bias, "--add-head-bias", "off", "on");
}

}  // namespace

HfFamily phi_family() {
  ModelConfig model = gelu_model();
  model.residual_form = ResidualForm::kParallelOneNorm;
  model.add_head_bias = true;
  model.rotary_percent = 0.5;
  return {
      .architecture = "PhiForCausalLM",
      .model_type = "phi",
      .rules = {{"embedding", {"model.embed_tokens"}},
                {"final_norm", {"model.final_layernorm"}},
                {"head", {"lm_head"}}},
      .layer_rules = {{"attention_norm", {"input_layernorm"}},
                      {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
                      {"attention.out", {"self_attn.dense"}},
                      {"mlp.up", {"mlp.fc1"}},
                      {"mlp.down", {"mlp.fc2"}}},
      .model = model,
      .keys = phi_keys(),
      .has_form =
          [](const ModelConfig& c) { return has_gelu_form(c) && c.residual_form == ResidualForm::kParallelOneNorm; },
      .check = check_phi};
}

}  // namespace ranklab
