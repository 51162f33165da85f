// LlamaForCausalLM: RMSNorm, RoPE, SwiGLU; biases on all linear layers, only in attention, or none.
#include "core/checkpoint/hf/families/families.h"
#include "core/checkpoint/hf/keys.h"
#include "core/checkpoint/hf/refusal.h"
#include "core/checkpoint/hf/rules.h"

namespace ranklab {
namespace {

HfKeys llama_keys() {
  return together({transformer_keys(),
                   {hf_member("intermediate_size", RANKLAB_HF(ffn_hidden_size)), head_dim_key(),
                    hf_member("rms_norm_eps", RANKLAB_HF(norm_epsilon), 1e-6)},
                   linear_bias_keys(),
                   ending_keys(false)});
}

}  // namespace

HfFamily llama_family() {
  return {.architecture = "LlamaForCausalLM",
          .model_type = "llama",
          .layer_rules = together({llama_norm_rules(), llama_attention_rules(), llama_mlp_rules()}),
          .keys = llama_keys(),
          .class_defaults = {{"vocab_size", 32000},
                             {"hidden_size", 4096},
                             {"intermediate_size", 11008},
                             {"num_hidden_layers", 32},
                             {"num_attention_heads", 32},
                             {"max_position_embeddings", 2048},
                             {"rms_norm_eps", 1e-6},
                             {"eos_token_id", 2},
                             {"bos_token_id", 1}},
          .has_form = [](const ModelConfig&) { return true; },
          .check = check_llama_layers};
}

}  // namespace ranklab
