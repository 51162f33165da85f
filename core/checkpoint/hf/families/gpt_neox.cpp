// GPTNeoXForCausalLM (arXiv 2204.06745), also used by Pythia (arXiv 2304.01373): LayerNorm, partial rotary embeddings,
// GELU, biases. Attention and MLP either read the same residual stream, each through its own norm (parallel), or follow
// one another. The queries, keys and values of a head are interleaved.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/families/gelu.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"

namespace ranklab {
namespace {

// The rotary keys in files of transformers 4; rope.h reads the other form.
HfKeys rotary_keys() {
  return {hf_member("rotary_pct", RANKLAB_HF(rotary_percent), 0.25),
          hf_member("rotary_emb_base", RANKLAB_HF(rope_theta), 10000.0)};
}

HfKeys gpt_neox_keys() {
  return together(
      {{hf_member("vocab_size", RANKLAB_HF(vocab_size)), hf_member("hidden_size", RANKLAB_HF(hidden_size)),
        hf_member("num_hidden_layers", RANKLAB_HF(num_layers)),
        hf_member("num_attention_heads", RANKLAB_HF(num_attention_heads)), positions_key("max_position_embeddings"),
        gelu_key("gelu"), hf_member("initializer_range", RANKLAB_HF(init_std), 0.02),
        hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)),
        hf_member("layer_norm_eps", RANKLAB_HF(norm_epsilon), 1e-5),
        parallel_residual_key(ResidualForm::kParallel, true), hf_constant("attention_bias", true),
        hf_member("hidden_dropout", RANKLAB_HF(dropout), 0.0), hf_note("classifier_dropout", 0.1)},
       rotary_keys(),
       ending_keys(false)});
}

void check_gpt_neox(const HfRefusal& r, const ModelConfig& c) {
  check_gelu_layers(r, c);
  r.require_off("--add-head-bias", c.add_head_bias);
  r.require(c.query_groups() == c.num_attention_heads, "--num-query-groups", std::to_string(c.query_groups()),
            "0: as many as heads");
}

}  // namespace

HfFamily gpt_neox_family() {
  return {.architecture = "GPTNeoXForCausalLM",
          .model_type = "gpt_neox",
          .layer_prefix = "gpt_neox.layers.",
          .rules = {{"embedding", {"gpt_neox.embed_in"}},
                    {"final_norm", {"gpt_neox.final_layer_norm"}},
                    {"head", {"embed_out"}}},
          .layer_rules = {{"attention_norm", {"input_layernorm"}},
                          {"attention.qkv", {"attention.query_key_value"}, HfLayout::kHeadsTogether},
                          {"attention.out", {"attention.dense"}},
                          {"mlp_norm", {"post_attention_layernorm"}},
                          {"mlp.up", {"mlp.dense_h_to_4h"}},
                          {"mlp.down", {"mlp.dense_4h_to_h"}}},
          .model = gelu_model(),
          .keys = gpt_neox_keys(),
          .has_form = has_gelu_form,
          .check = check_gpt_neox};
}

}  // namespace ranklab
