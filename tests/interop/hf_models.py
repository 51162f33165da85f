"""Models of transformers by the names of docs/hugging_face.md's table, small and random, and how to run ranklab: what
hf_roundtrip.py and hf_training.py share. sys.argv[1] is the program."""
import os
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
WIDTHS = dict(hidden_size=64, num_attention_heads=4, vocab_size=300, max_position_embeddings=128,
              num_hidden_layers=3)
DEEPSEEK = dict(WIDTHS, intermediate_size=96, moe_intermediate_size=48, num_key_value_heads=4, q_lora_rank=24,
                kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=8,
                n_shared_experts=2, num_experts_per_tok=3, n_group=4, topk_group=2, first_k_dense_replace=1,
                num_mtp_layers=0)
DEEPSEEK_V2 = {**{key: value for key, value in DEEPSEEK.items() if key not in ("n_group", "topk_group", "num_mtp_layers")},
               "q_lora_rank": None}
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32, beta_fast=32,
            beta_slow=1, mscale=1.0, mscale_all_dim=0.7)
QWEN = dict(WIDTHS, intermediate_size=96, num_key_value_heads=2)
LLAMA3 = dict(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
EXPERTS = dict(QWEN, moe_intermediate_size=48, num_experts=6, num_experts_per_tok=3)
ALL_EXPERTS = {key: value for key, value in EXPERTS.items() if key != "intermediate_size"}
# Of larger weights an ulp of one moves logits by 3e-4 of the largest there: keys are short before their length is 1.
LINEAR = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=12, linear_value_head_dim=10,
              initializer_range=0.05)
GPT_OSS_NUMBERS = dict(QWEN, head_dim=24, num_local_experts=6, num_experts_per_tok=3, sliding_window=7)
GLM_NUMBERS = dict(QWEN, head_dim=24, n_routed_experts=6, num_experts_per_tok=3, moe_intermediate_size=48,
                   n_shared_experts=2, num_mtp_layers=0)
LLAMA4_NUMBERS = dict(QWEN, head_dim=24, intermediate_size=48, intermediate_size_mlp=96, num_local_experts=6,
                      num_experts_per_tok=1, attention_chunk_size=7, floor_scale=5, attn_scale=0.3)
GRANITE = dict(QWEN, embedding_multiplier=5.0, residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=6.0,
               bos_token_id=None, eos_token_id=None)
ERNIE_MOE = dict(QWEN, moe_num_experts=6, moe_k=3, moe_intermediate_size=48, moe_num_shared_experts=2)
NEMOTRON_H = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=24, vocab_size=300,
                  max_position_embeddings=128, intermediate_size=96, mamba_num_heads=8, mamba_head_dim=12, n_groups=4,
                  ssm_state_size=10)
THEIRS = {
    "Llama": ("Llama", dict(WIDTHS, intermediate_size=96, num_key_value_heads=1, attention_bias=True, mlp_bias=True,
                            rope_parameters=dict(rope_type="default", rope_theta=700.0))),
    "Llama, llama3 positions": ("Llama", dict(QWEN, attention_bias=True, rope_parameters=LLAMA3)),
    "Llama, linear positions": ("Llama", dict(QWEN, rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=3.0))),
    "Llama, dynamic positions": ("Llama", dict(QWEN, max_position_embeddings=32,
                                               rope_parameters=dict(rope_type="dynamic", rope_theta=1e4, factor=2.0))),
    "Llama, YaRN, bf16": ("Llama", dict(QWEN, rope_parameters={k: v for k, v in YARN.items() if "mscale" not in k})),
    "Mistral, YaRN": ("Mistral", dict(QWEN, sliding_window=None,
                                      rope_parameters=dict(YARN, attention_factor=1.3, truncate=False))),
    "Mistral, window": ("Mistral", dict(QWEN, sliding_window=12)),
    "Mixtral, window": ("Mixtral", dict(WIDTHS, intermediate_size=96, num_key_value_heads=2, num_local_experts=4,
                                        num_experts_per_tok=2, sliding_window=20)),
    "Qwen3, window": ("Qwen3", dict(QWEN, head_dim=24, use_sliding_window=True, sliding_window=7, max_window_layers=0)),
    "Qwen2, window in some layers": ("Qwen2", dict(QWEN, use_sliding_window=True, sliding_window=7,
                                                   max_window_layers=1)),
    "Qwen3, layer types": ("Qwen3", dict(QWEN, head_dim=24, use_sliding_window=True, sliding_window=7,
                                         layer_types=["full_attention", "sliding_attention", "full_attention"])),
    "OLMo 2": ("Olmo2", dict(QWEN, rope_parameters=dict(rope_type="default", rope_theta=5e5))),
    "OLMo 2, attention biases": ("Olmo2", dict(QWEN, attention_bias=True, num_key_value_heads=4)),
    "OLMo 3": ("Olmo3", dict(QWEN, sliding_window=7, num_hidden_layers=5)),
    "OLMo 3, YaRN": ("Olmo3", dict(
        QWEN, sliding_window=7, num_hidden_layers=4, rope_parameters=dict(
            full_attention=dict(rope_type="yarn", rope_theta=5e5, factor=4.0, original_max_position_embeddings=32,
                                beta_fast=32, beta_slow=1),
            sliding_attention=dict(rope_type="default", rope_theta=5e5)))),
    "Gemma 2": ("Gemma2", dict(QWEN, head_dim=24, query_pre_attn_scalar=30, sliding_window=7,
                               attn_logit_softcapping=4.0, final_logit_softcapping=6.0)),
    "Gemma 3": ("Gemma3", dict(QWEN, head_dim=24, query_pre_attn_scalar=24, sliding_window=7, num_hidden_layers=7)),
    "Gemma 3, linear positions, bf16": ("Gemma3", dict(
        QWEN, head_dim=24, query_pre_attn_scalar=24, sliding_window=7, final_logit_softcapping=9.0,
        layer_types=["full_attention", "sliding_attention", "full_attention"], rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=5e5, factor=8.0),
            sliding_attention=dict(rope_type="default", rope_theta=700.0)))),
    "GPT-NeoX": ("GPTNeoX", dict(WIDTHS, intermediate_size=96)),
    "GPT-NeoX, sequential": ("GPTNeoX", dict(WIDTHS, intermediate_size=96, use_parallel_residual=False,
                                             hidden_act="gelu_fast")),
    "Phi-2": ("Phi", dict(QWEN)),
    "Phi-2, fp16": ("Phi", dict(WIDTHS, intermediate_size=96, hidden_act="gelu")),
    "Phi-3, longrope": ("Phi3", dict(QWEN, pad_token_id=0, original_max_position_embeddings=32, rope_parameters=dict(
        rope_type="longrope", rope_theta=1e4, short_factor=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
        long_factor=[1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0]))),
    "Phi-3, longrope, short": ("Phi3", dict(
        QWEN, pad_token_id=0, original_max_position_embeddings=96, rope_parameters=dict(
            rope_type="longrope", rope_theta=1e4, short_factor=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],
            long_factor=[1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0]))),
    "StableLM, fp16": ("StableLm", dict(WIDTHS, intermediate_size=96, num_key_value_heads=2, use_qkv_bias=True,
                                        rope_parameters=dict(rope_type="default", rope_theta=1e4,
                                                             partial_rotary_factor=0.25))),
    "StableLM, one norm": ("StableLm", dict(WIDTHS, intermediate_size=96, num_key_value_heads=4, use_parallel_residual=True,
                                            rope_parameters=dict(rope_type="default", rope_theta=1e4,
                                                                 partial_rotary_factor=0.5))),
    "SmolLM 3": ("SmolLM3", dict(QWEN, pad_token_id=None, num_hidden_layers=5)),
    "SmolLM 3, window": ("SmolLM3", dict(QWEN, pad_token_id=None, no_rope_layers=[0, 1, 0, 1], attention_bias=True,
                                         use_sliding_window=True, sliding_window=7, tie_word_embeddings=False)),
    "gpt-oss": ("GptOss", GPT_OSS_NUMBERS),
    "gpt-oss, top-1, bf16": ("GptOss", dict(GPT_OSS_NUMBERS, num_experts_per_tok=1, rope_parameters=dict(
        rope_type="default", rope_theta=1e4))),
    "gpt-oss, MXFP4": ("GptOss", GPT_OSS_NUMBERS),
    "Llama 4": ("Llama4", dict(LLAMA4_NUMBERS, no_rope_layer_interval=2)),
    "Llama 4, experts in some layers, bf16": ("Llama4", dict(
        LLAMA4_NUMBERS, num_hidden_layers=4, interleave_moe_layer_step=2, use_qk_norm=False, attention_bias=True,
        rope_parameters=dict(LLAMA3, high_freq_factor=1.0))),
    "Qwen3-MoE, experts in some layers": ("Qwen3Moe", dict(
        EXPERTS, head_dim=24, num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[1])),
    "Qwen3-Next": ("Qwen3Next", dict(EXPERTS, **LINEAR, head_dim=32, num_hidden_layers=5, norm_topk_prob=True,
                                     shared_expert_intermediate_size=40, mlp_only_layers=[1])),
    "Qwen3-Next, other layers, bf16": ("Qwen3Next", dict(
        EXPERTS, **LINEAR, head_dim=24, shared_expert_intermediate_size=40, attention_bias=True,
        layer_types=["full_attention", "linear_attention", "linear_attention"],
        rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5))),
    "Qwen3.5": ("Qwen3_5", dict(QWEN, **LINEAR, head_dim=32, num_hidden_layers=5, tie_word_embeddings=True)),
    "Qwen3.5-MoE": ("Qwen3_5Moe", dict(
        ALL_EXPERTS, **LINEAR, head_dim=32, num_hidden_layers=5, shared_expert_intermediate_size=40)),
    "Qwen3.5-MoE, top-1, bf16": ("Qwen3_5Moe", dict(
        ALL_EXPERTS, **LINEAR, head_dim=24, num_experts_per_tok=1, shared_expert_intermediate_size=40, attention_bias=True,
        layer_types=["full_attention", "linear_attention", "linear_attention"])),
    "Nemotron-H": ("NemotronH", dict(NEMOTRON_H, hybrid_override_pattern="M-M*-M")),
    "Nemotron-H, experts, bf16": ("NemotronH", dict(
        NEMOTRON_H, layers_block_type=["linear_attention", "moe", "full_attention", "moe"], n_routed_experts=6,
        num_experts_per_tok=3, moe_intermediate_size=40, moe_shared_expert_intermediate_size=56, n_group=2, topk_group=1,
        routed_scaling_factor=2.5)),
    "Nemotron-H, latent experts": ("NemotronH", dict(
        NEMOTRON_H, hybrid_override_pattern="MEM*E", n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=40,
        moe_shared_expert_intermediate_size=56, moe_latent_size=24, n_group=1, topk_group=1)),
    "GLM-4.5": ("Glm4Moe", dict(GLM_NUMBERS, attention_bias=True, routed_scaling_factor=2.5)),
    "GLM-4.5, norms, bf16": ("Glm4Moe", dict(GLM_NUMBERS, use_qk_norm=True, n_group=2, topk_group=1)),
    "Seed-OSS": ("SeedOss", dict(QWEN, head_dim=24)),
    "Seed-OSS, all biases": ("SeedOss", dict(QWEN, head_dim=16, attention_out_bias=True, mlp_bias=True)),
    "Granite": ("Granite", GRANITE),
    "Granite, biases, bf16": ("Granite", dict(GRANITE, attention_bias=True, mlp_bias=True, attention_multiplier=0.25,
                                              embedding_multiplier=12.0, tie_word_embeddings=True)),
    "Granite, experts": ("GraniteMoe", dict(GRANITE, num_local_experts=6, num_experts_per_tok=3)),
    "Granite, top-1": ("GraniteMoe", dict(GRANITE, num_local_experts=4, num_experts_per_tok=1, attention_bias=True)),
    "GLM-4": ("Glm4", dict(QWEN, head_dim=24, pad_token_id=0)),
    "GLM-4, no biases, bf16": ("Glm4", dict(QWEN, head_dim=16, pad_token_id=0, attention_bias=False, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.75))),
    "ERNIE 4.5": ("Ernie4_5", dict(QWEN, head_dim=24)),
    "ERNIE 4.5, biases": ("Ernie4_5", dict(QWEN, head_dim=16, use_bias=True, tie_word_embeddings=False)),
    "ERNIE 4.5, experts": ("Ernie4_5_Moe", ERNIE_MOE),
    "ERNIE 4.5, experts in some layers, bf16": ("Ernie4_5_Moe", dict(
        ERNIE_MOE, num_hidden_layers=4, moe_layer_end_index=2, moe_num_shared_experts=0)),
    "Cohere": ("Cohere", dict(QWEN, logit_scale=0.25)),
    "Cohere, biases, bf16": ("Cohere", dict(QWEN, attention_bias=True, tie_word_embeddings=False)),
    "Cohere 2": ("Cohere2", dict(QWEN, sliding_window=7, num_hidden_layers=5, logit_scale=0.25)),
    "Cohere 2, full attention last": ("Cohere2", dict(
        QWEN, sliding_window=7, layer_types=["sliding_attention", "sliding_attention", "full_attention"])),
    "Nemotron": ("Nemotron", dict(QWEN)),
    "Nemotron, biases": ("Nemotron", dict(QWEN, attention_bias=True, mlp_bias=True, head_dim=24, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.75))),
    "Phi-3": ("Phi3", dict(QWEN, pad_token_id=0, partial_rotary_factor=0.75, sliding_window=11)),
    "Phi-4": ("Phi3", dict(QWEN, pad_token_id=0, rope_parameters=dict(rope_type="default", rope_theta=250000.0))),
    "GPT-2": ("GPT2", dict(vocab_size=300, n_positions=64, n_embd=64, n_layer=3, n_head=4)),
    "Mixtral": ("Mixtral", dict(WIDTHS, intermediate_size=96, num_key_value_heads=2, num_local_experts=4,
                                num_experts_per_tok=2)),
    "Mixtral, wide heads": ("Mixtral", dict(WIDTHS, intermediate_size=96, num_key_value_heads=2, num_local_experts=4,
                                            num_experts_per_tok=2, head_dim=24)),
    "Mixtral, top-1": ("Mixtral", dict(WIDTHS, intermediate_size=96, num_key_value_heads=2, num_local_experts=4,
                                       num_experts_per_tok=1)),
    "Qwen2": ("Qwen2", dict(QWEN, tie_word_embeddings=True)),
    "Qwen3": ("Qwen3", dict(QWEN, head_dim=24, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "Qwen3, attention biases": ("Qwen3", dict(QWEN, head_dim=24, attention_bias=True)),
    "Qwen2-MoE": ("Qwen2Moe", dict(EXPERTS, shared_expert_intermediate_size=40)),
    "Qwen3-MoE": ("Qwen3Moe", dict(EXPERTS, head_dim=24, norm_topk_prob=True, mlp_only_layers=[0])),
    "DeepSeek-V2": ("DeepseekV2", DEEPSEEK_V2),
    "DeepSeek-V2, YaRN, bf16": ("DeepseekV2", dict(DEEPSEEK_V2, rope_parameters=YARN, q_lora_rank=24,
                                                   attention_bias=True, first_k_dense_replace=0,
                                                   routed_scaling_factor=1.5)),
    "DeepSeek-V2, groups": ("DeepseekV2", dict(DEEPSEEK_V2, n_group=4, topk_group=2, topk_method="group_limited_greedy",
                                               q_lora_rank=24, routed_scaling_factor=1.5)),
    "DeepSeek-V3": ("DeepseekV3", DEEPSEEK),
    "DeepSeek-V3, YaRN, bf16": ("DeepseekV3", dict(DEEPSEEK, rope_parameters=YARN, q_lora_rank=None)),
    "DeepSeek-V3, halves": ("DeepseekV3", dict(DEEPSEEK, rope_interleave=False)),
    "DeepSeek-V3, FP8": ("DeepseekV3", dict(DEEPSEEK, hidden_size=192, intermediate_size=300, q_lora_rank=160)),
    "Qwen3-MoE, FP8, bf16": ("Qwen3Moe", dict(EXPERTS, hidden_size=160, head_dim=96, norm_topk_prob=True)),
}


# Those whose names contain one of the command line's words, or all.
def chosen(models):
    words = sys.argv[2:]
    return [(name, one) for name, one in models.items() if not words or any(word in name for word in words)]


def ranklab(*words):
    done = subprocess.run([sys.argv[1], *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ranklab {' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


# Norms, biases and the router's bias are not all the same.
def random_model(family, numbers, std=0.2):
    torch.manual_seed(7)
    kind = family + "Text" if family in ("Gemma3", "Llama4", "Qwen3_5", "Qwen3_5Moe") else family
    config = getattr(transformers, kind + "Config")(**{"initializer_range": std, **numbers})
    model = getattr(transformers, "GPT2LMHeadModel" if family == "GPT2" else family + "ForCausalLM")(config).eval()
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.dim() == 1 or len(tensor) == 1:
                tensor += 0.1 * torch.randn_like(tensor)
    return model
