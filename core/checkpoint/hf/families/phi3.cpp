// Phi3ForCausalLM (arXiv 2404.14219), also used by Phi-4 (arXiv 2412.08905): Llama without biases, optionally with
// partial rotary embeddings; queries, keys and values are one matrix, as in ranklab, and so are gate and up. A model is
// written as this class if its rotary embeddings are partial, or if its settings name the class.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

constexpr const char* kPhi3 = "Phi3ForCausalLM";

// For files; rope.h reads it.
HfJson original_length(const ModelConfig& c) {
  const bool is_long = c.rope_scaling.kind == RopeScalingKind::kLongRope;
  return HfJson(is_long ? c.rope_scaling.original_seq_length : c.seq_length);
}

HfKeys phi3_keys() {
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
                    window_key(),
                    {"original_max_position_embeddings", original_length, [](ModelConfig&, const HfValue&) {}},
                    hf_note("resid_pdrop", 0.0),
                    hf_note("embd_pdrop", 0.0),
                    pad_token_key(nullptr)},
                   ending_keys(false)});
}

void check_phi3(const HfRefusal& r, const ModelConfig& c) {
  check_partly_rotary_layers(r, c);
  check_window_of_all_layers(r, c);
  r.require_off("--add-bias-linear or --add-qkv-bias", c.has_qkv_bias());
  const bool plain = !c.yarn.enabled() && !c.rope_scaling.enabled();
  r.require(plain || c.rope_scaling.kind == RopeScalingKind::kLongRope, "stretched rotary frequencies", "on",
            "off, or --rope-scaling-type longrope");
  r.require(c.query_width() == c.hidden_size, "--kv-channels", std::to_string(c.kv_channels),
            "0: --hidden-size / --num-attention-heads");
}

}  // namespace

HfFamily phi3_family() {
  ModelConfig model;
  model.hf_architecture = kPhi3;
  return {
      .architecture = kPhi3,
      .model_type = "phi3",
      .layer_rules = together({llama_norm_rules(),
                               {{"attention.qkv", {"self_attn.qkv_proj"}},
                                {"attention.out", {"self_attn.o_proj"}},
                                {"mlp.gate_up", {"mlp.gate_up_proj"}},
                                {"mlp.down", {"mlp.down_proj"}}}}),
      .model = model,
      .keys = phi3_keys(),
      .has_form =
          [](const ModelConfig& c) { return !c.moe.enabled() && (c.hf_architecture == kPhi3 || c.is_partly_rotary()); },
      .check = check_phi3};
}

}  // namespace ranklab
