"""Models trained here, exported and loaded by Hugging Face's transformers, give the same logits there; models that
transformers saved, imported here, give theirs. Run with a Python that has torch, transformers and safetensors:

    python tests/interop/hf_roundtrip.py build/release/bin/ranklab [WORD ...]

WORDs: only models whose names contain one of them. Prints the table of docs/hugging_face.md and ends with 1 when a
difference is above the bar."""
import json
import os
import re
import shutil
import sys
import tempfile

from hf_models import ALL_EXPERTS, LINEAR, LLAMA4_NUMBERS, QWEN, THEIRS, chosen, random_model, ranklab
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

BAR = 1e-4
PROMPT = "In the beginning God created the heaven and the earth."
SIZES = ["--hidden-size", "64", "--num-attention-heads", "4", "--seq-length", "64", "--vocab-size", "300"]
DENSE = ["--num-layers", "3", "--ffn-hidden-size", "96", *SIZES]
GEMMA = ["--num-query-groups", "2", "--kv-channels", "24", "--norm-placement", "both", "--apply-layernorm-1p",
         "--activation", "geglu", "--scale-embeddings", "--tie-embeddings", "--window-size", "9", "--norm-epsilon", "1e-6"]
GPT_OSS = ["--num-query-groups", "2", "--num-experts", "6", "--moe-router-topk", "3", "--add-bias-linear",
           "--add-router-bias", "--activation", "swigluoai", "--softmax-type", "learnable"]
QWEN_HYBRID = ["--num-query-groups", "2", "--kv-channels", "32", "--qk-layernorm", "--apply-layernorm-1p",
               "--attention-output-gate", "--norm-epsilon", "1e-6", "--linear-attention-type", "gated_delta_net",
               "--linear-attention-freq", "3", "--linear-num-key-heads", "2", "--linear-num-value-heads", "4",
               "--linear-key-head-dim", "12", "--linear-value-head-dim", "10"]
NEMOTRON_H = ["--num-query-groups", "2", "--kv-channels", "24", "--position-embedding-type", "none", "--activation",
              "squared_relu", "--mamba-num-heads", "8", "--mamba-head-dim", "12", "--mamba-state-dim", "10",
              "--mamba-num-groups", "4"]
GLM = ["--num-query-groups", "2", "--kv-channels", "24", "--add-qkv-bias", "--num-experts", "6",
       "--moe-router-topk", "3", "--moe-ffn-hidden-size", "48", "--moe-shared-expert-intermediate-size", "48",
       "--first-k-dense-replace", "1", "--moe-router-score-function", "sigmoid", "--moe-router-enable-expert-bias"]
LLAMA4 = ["--num-query-groups", "2", "--kv-channels", "24", "--num-experts", "6", "--moe-router-topk", "1",
          "--moe-ffn-hidden-size", "48", "--moe-shared-expert-intermediate-size", "48", "--moe-apply-probs-on-input",
          "--moe-router-score-function", "sigmoid", "--no-moe-router-norm-topk"]
GELU = ["--normalization", "LayerNorm", "--add-bias-linear"]
OURS = {
    "Llama": [*DENSE, "--num-query-groups", "2", "--rotary-base", "5000", "--tp", "2", "--world-size", "4"],
    "Llama, tied, biases": [*DENSE, "--tie-embeddings", "--add-bias-linear", "--pp", "3", "--world-size", "3"],
    "Llama, wide heads": [*DENSE, "--kv-channels", "24", "--num-query-groups", "2", "--tp", "2", "--world-size", "2"],
    "Llama, llama3 positions": [*DENSE, "--num-query-groups", "2", "--rope-scaling-type", "llama3",
                                "--rope-scaling-factor", "8", "--rope-scaling-original-length", "32", "--tp", "2",
                                "--sequence-parallel", "--world-size", "4"],
    "Llama, linear positions": [*DENSE, "--rope-scaling-type", "linear", "--rope-scaling-factor", "4", "--pp", "3",
                                "--world-size", "3"],
    "Llama, dynamic positions": [*DENSE, "--rope-scaling-type", "dynamic", "--rope-scaling-factor", "2",
                                 "--rope-scaling-original-length", "32", "--tp", "2", "--world-size", "4"],
    "Llama, YaRN": [*DENSE, "--rotary-scaling-factor", "4", "--original-max-position-embeddings", "16",
                    "--mscale-all-dim", "0", "--dp", "4", "--world-size", "4", "--zero-stage", "3"],
    "Llama, attention biases": [*DENSE, "--num-query-groups", "2", "--add-attention-bias", "--tp", "2", "--world-size",
                                "4", "--zero-stage", "1"],
    "Mistral": [*DENSE, "--num-query-groups", "2", "--hf-architecture", "MistralForCausalLM", "--tp", "2",
                "--world-size", "2"],
    "Mistral, window": [*DENSE, "--num-query-groups", "2", "--window-size", "9", "--tp", "2", "--sequence-parallel",
                        "--world-size", "4", "--zero-stage", "2"],
    "Qwen2, window": [*DENSE, "--num-query-groups", "2", "--window-size", "17", "--add-qkv-bias", "--pp", "3",
                      "--world-size", "3"],
    "Qwen2, window in some layers": [*DENSE, "--num-query-groups", "2", "--window-size", "9", "--window-attn-skip-freq",
                                     "[0]+[1]*2", "--add-qkv-bias", "--pp", "3", "--world-size", "3"],
    "OLMo 2": [*DENSE, "--num-query-groups", "2", "--norm-placement", "behind", "--qk-layernorm",
               "--qk-layernorm-width", "all-heads", "--tp", "4", "--sequence-parallel", "--world-size", "4"],
    "OLMo 3": [*DENSE, "--num-query-groups", "2", "--norm-placement", "behind", "--qk-layernorm",
               "--qk-layernorm-width", "all-heads", "--window-size", "9", "--window-attn-skip-freq", "2",
               "--rotary-base", "70000", "--rotary-base-local", "70000", "--rotary-scaling-factor", "4",
               "--original-max-position-embeddings", "16", "--mscale-all-dim", "0", "--tp", "2", "--world-size", "4",
               "--zero-stage", "2"],
    "Gemma 2": [*DENSE, *GEMMA, "--window-attn-skip-freq", "2", "--attn-logit-softcapping", "5",
                "--final-logit-softcapping", "3", "--query-pre-attn-scalar", "24", "--tp", "2", "--sequence-parallel",
                "--world-size", "4", "--zero-stage", "3"],
    "Gemma 3": [*DENSE, *GEMMA, "--window-attn-skip-freq", "3", "--rotary-base-local", "700", "--rotary-base", "1e6",
                "--rope-scaling-type", "linear", "--rope-scaling-factor", "8", "--qk-layernorm", "--pp", "3",
                "--world-size", "3"],
    "GPT-NeoX": [*DENSE, *GELU, "--activation", "gelu_erf", "--residual-form", "parallel", "--rotary-percent", "0.25",
                 "--tp", "2", "--sequence-parallel", "--world-size", "4", "--zero-stage", "1"],
    "GPT-NeoX, sequential": [*DENSE, *GELU, "--activation", "gelu", "--pp", "3", "--world-size", "3"],
    "Phi-2": [*DENSE, *GELU, "--activation", "gelu", "--residual-form", "parallel-one-norm", "--add-head-bias",
              "--rotary-percent", "0.5", "--num-query-groups", "2", "--tp", "2", "--world-size", "4"],
    "Phi-3, longrope": [*DENSE, "--num-query-groups", "2", "--hf-architecture", "Phi3ForCausalLM", "--rope-scaling-type",
                        "longrope", "--rope-scaling-factor", "4", "--rope-scaling-original-length", "32",
                        "--rope-short-factors", "1,1.1,1.2,1.3,1.4,1.5,1.6,1.7", "--rope-long-factors",
                        "1,2,3,4,8,16,32,64", "--tp", "2", "--sequence-parallel", "--world-size", "4"],
    "StableLM": [*DENSE, "--normalization", "LayerNorm", "--rotary-percent", "0.25", "--add-qkv-bias", "--tp", "2",
                 "--sequence-parallel", "--world-size", "4", "--zero-stage", "1"],
    "Phi-3": [*DENSE, "--num-query-groups", "2", "--rotary-percent", "0.5", "--tp", "2", "--world-size", "2"],
    "SmolLM 3": [*DENSE, "--num-query-groups", "2", "--no-rope-freq", "2", "--tp", "2", "--sequence-parallel",
                 "--world-size", "4", "--zero-stage", "3"],
    "SmolLM 3, YaRN, window": [*DENSE, "--num-query-groups", "2", "--no-rope-freq", "[1]+[0]*2", "--window-size", "9",
                               "--window-attn-skip-freq", "2", "--rotary-scaling-factor", "4",
                               "--original-max-position-embeddings", "16", "--mscale-all-dim", "0", "--pp", "3",
                               "--world-size", "3"],
    "gpt-oss": [*DENSE, *GPT_OSS, "--window-size", "9", "--window-attn-skip-freq", "2", "--rotary-scaling-factor", "4",
                "--original-max-position-embeddings", "16", "--mscale-all-dim", "0", "--no-yarn-truncate", "--tp", "2",
                "--sequence-parallel", "--ep", "2", "--world-size", "4", "--zero-stage", "2"],
    "gpt-oss, plain positions": [*DENSE, *GPT_OSS, "--kv-channels", "24", "--pp", "3", "--world-size", "3"],
    "Llama 4": [*DENSE, *LLAMA4, "--no-rope-freq", "3", "--window-attn-skip-freq", "3", "--attention-chunk-size", "9",
                "--qk-l2-norm", "--query-temperature-scale", "0.3", "--query-temperature-floor", "8", "--tp", "2",
                "--sequence-parallel", "--ep", "2", "--world-size", "4", "--zero-stage", "2"],
    "Llama 4, experts in some layers": [*DENSE, *LLAMA4, "--moe-layer-freq", "[0]+[1]", "--attention-chunk-size", "20",
                                        "--pp", "3", "--world-size", "3"],
    "Qwen3-Next": [*DENSE, *QWEN_HYBRID, "--num-experts", "6", "--moe-router-topk", "3", "--moe-ffn-hidden-size", "48",
                   "--moe-shared-expert-intermediate-size", "40", "--moe-shared-expert-gate", "--tp", "2",
                   "--sequence-parallel", "--ep", "2", "--world-size", "4", "--zero-stage", "2"],
    "Qwen3.5": [*DENSE, *QWEN_HYBRID, "--rotary-percent", "0.5", "--pp", "3", "--world-size", "3"],
    "Qwen3.5-MoE": [*DENSE, *QWEN_HYBRID, "--num-experts", "6", "--moe-router-topk", "3", "--moe-ffn-hidden-size", "48",
                    "--moe-shared-expert-intermediate-size", "40", "--moe-shared-expert-gate", "--hf-architecture",
                    "Qwen3_5MoeForCausalLM", "--ep", "2", "--world-size", "4", "--zero-stage", "3"],
    "Nemotron-H": ["--num-layers", "6", *SIZES, *NEMOTRON_H, "--hybrid-layer-pattern", "M-M*-M", "--pp", "3",
                   "--world-size", "3"],
    "Nemotron-H, experts": ["--num-layers", "4", *SIZES, *NEMOTRON_H, "--hybrid-layer-pattern", "ME*E",
                            "--mamba-min-step", "1e-3", "--num-experts", "6", "--moe-router-topk", "3",
                            "--moe-ffn-hidden-size", "48", "--moe-shared-expert-intermediate-size", "40",
                            "--moe-router-score-function", "sigmoid", "--moe-router-enable-expert-bias", "--tp", "2",
                            "--sequence-parallel", "--ep", "2", "--world-size", "4", "--zero-stage", "2"],
    "Nemotron-H, latent experts": ["--num-layers", "5", *SIZES, *NEMOTRON_H, "--hybrid-layer-pattern", "MEM*E",
                                   "--mamba-min-step", "1e-3", "--num-experts", "6", "--moe-router-topk", "3",
                                   "--moe-ffn-hidden-size", "48", "--moe-shared-expert-intermediate-size", "40",
                                   "--moe-latent-size", "24", "--moe-router-score-function", "sigmoid",
                                   "--moe-router-enable-expert-bias", "--ep", "2", "--world-size", "2"],
    "GLM-4.5": [*DENSE, *GLM, "--rotary-percent", "0.5", "--qk-layernorm", "--mtp-num-layers", "1", "--tp", "2", "--sequence-parallel", "--ep", "2",
                "--world-size", "4", "--zero-stage", "2"],
    "GLM-4.5, whole heads turn": [*DENSE, *GLM, "--pp", "3", "--world-size", "3"],
    "Nemotron": [*DENSE, "--normalization", "LayerNorm", "--apply-layernorm-1p", "--activation", "squared_relu",
                 "--rotary-percent", "0.5", "--num-query-groups", "2", "--tp", "2", "--world-size", "4",
                 "--zero-stage", "2"],
    "GPT-2": [*DENSE, "--normalization", "LayerNorm", "--position-embedding-type", "learned_absolute", "--activation",
              "gelu", "--add-bias-linear", "--tie-embeddings", "--dp", "4", "--world-size", "4"],
    "Mixtral": [*DENSE, "--num-query-groups", "2", "--num-experts", "4", "--moe-router-topk", "2", "--ep", "2",
                "--world-size", "4", "--rotary-base", "1e6"],
    "Mixtral, top-1": [*DENSE, "--num-query-groups", "2", "--num-experts", "4", "--moe-router-topk", "1",
                       "--moe-router-norm-top1", "--ep", "2", "--world-size", "2"],
    "Qwen2": [*DENSE, "--num-query-groups", "2", "--add-qkv-bias", "--tie-embeddings", "--norm-epsilon", "1e-6", "--tp",
              "2", "--world-size", "4"],
    "Qwen3": [*DENSE, "--num-query-groups", "2", "--qk-layernorm", "--kv-channels", "24", "--rotary-base", "1e6", "--pp",
              "3", "--world-size", "3"],
    "Qwen3, attention biases": [*DENSE, "--num-query-groups", "2", "--qk-layernorm", "--kv-channels", "24",
                                "--add-attention-bias", "--tp", "2", "--sequence-parallel", "--world-size", "2"],
    "Qwen2-MoE": [*DENSE, "--num-query-groups", "2", "--add-qkv-bias", "--num-experts", "6", "--moe-router-topk", "3",
                  "--moe-ffn-hidden-size", "48", "--moe-shared-expert-intermediate-size", "40",
                  "--moe-shared-expert-gate", "--no-moe-router-norm-topk", "--ep", "2", "--world-size", "4"],
    "Qwen3-MoE": [*DENSE, "--num-query-groups", "2", "--qk-layernorm", "--kv-channels", "24", "--num-experts", "6",
                  "--moe-router-topk", "3", "--moe-ffn-hidden-size", "48", "--first-k-dense-replace", "1", "--tp", "2",
                  "--sequence-parallel", "--ep", "2", "--world-size", "4", "--zero-stage", "1"],
    "DeepSeek-V2": ["--preset", "deepseek_v3_tiny", *SIZES, "--moe-router-score-function", "softmax",
                    "--no-moe-router-norm-topk", "--moe-router-num-groups", "1", "--moe-router-group-topk", "1",
                    "--no-moe-router-enable-expert-bias", "--mtp-num-layers", "0", "--q-lora-rank", "0", "--tp", "2",
                    "--sequence-parallel", "--ep", "2", "--world-size", "4", "--zero-stage", "2"],
    "DeepSeek-V2, groups": ["--preset", "deepseek_v3_tiny", *SIZES, "--moe-router-score-function", "softmax",
                            "--no-moe-router-norm-topk", "--moe-router-group-best", "1",
                            "--no-moe-router-enable-expert-bias", "--mtp-num-layers", "0", "--ep", "2",
                            "--world-size", "4", "--zero-stage", "3"],
    "DeepSeek-V3": ["--preset", "deepseek_v3_tiny", *SIZES, "--ep", "4", "--world-size", "4", "--zero-stage", "1"],
    "DeepSeek-V3, attention biases": ["--preset", "deepseek_v3_tiny", *SIZES, "--add-attention-bias", "--tp", "2",
                                      "--sequence-parallel", "--world-size", "4", "--zero-stage", "3"],
    "DeepSeek-V3, no experts": ["--preset", "deepseek_v3_tiny", *SIZES, "--num-experts", "0", "--q-lora-rank", "0",
                                "--moe-shared-expert-intermediate-size", "0", "--moe-router-load-balancing-type",
                                "none", "--moe-aux-loss-coeff", "0", "--no-moe-router-enable-expert-bias",
                                "--mtp-num-layers", "0", "--rotary-scaling-factor", "1", "--tp", "2",
                                "--world-size", "2"],
}
# Text models beside one of pictures: the class, its text model's and its own numbers.
PICTURES = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=28,
                patch_size=14)
WITH_PICTURES = {
    "Llama 4, beside pictures": ("Llama4", LLAMA4_NUMBERS, dict(
        boi_token_index=297, eoi_token_index=298, vision_config=dict(
            PICTURES, vision_output_dim=16, projector_input_dim=16, projector_output_dim=16))),
    "Gemma 3, beside pictures": ("Gemma3", dict(QWEN, head_dim=24, query_pre_attn_scalar=24, sliding_window=7), dict(
        boi_token_index=297, eoi_token_index=298, mm_tokens_per_image=4, vision_config=PICTURES)),
    "Qwen3.5, beside pictures": ("Qwen3_5", dict(QWEN, **LINEAR, head_dim=32, num_hidden_layers=5, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.25, mrope_interleaved=True,
        mrope_section=[2, 1, 1])), dict(
        image_token_id=297, video_token_id=298, vision_start_token_id=295, vision_end_token_id=296, vision_config=dict(
            depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=14, out_hidden_size=64))),
    "Qwen3.5-MoE, beside pictures": ("Qwen3_5Moe", dict(
        ALL_EXPERTS, **LINEAR, head_dim=32, num_hidden_layers=5, shared_expert_intermediate_size=40, rope_parameters=dict(
            rope_type="default", rope_theta=1e4, partial_rotary_factor=0.25, mrope_interleaved=True,
            mrope_section=[2, 1, 1])), dict(
        image_token_id=297, video_token_id=298, vision_start_token_id=295, vision_end_token_id=296, vision_config=dict(
            depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=14, out_hidden_size=64))),
    "Mistral Small 3.1": ("Mistral3", dict(QWEN, model_type="mistral", head_dim=24, sliding_window=None), dict(
        vision_config=dict(PICTURES, model_type="pixtral"))),
}
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "hugging_face.md")
failures = []


def our_logits(checkpoint, folder):
    path = os.path.join(folder, "logits.safetensors")
    ranklab("generate", "--load", checkpoint, "--prompt", PROMPT, "--tokens", "1", "--print-logits", path)
    tensors = load_file(path)
    return tensors["tokens"], tensors["logits"]


def their_logits(folder, tokens):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                       output_loading_info=True)
    extra = [k for k in info["unexpected_keys"] if f".{model.config.num_hidden_layers}." not in k]    # but MTP
    if info["missing_keys"] or extra or info["mismatched_keys"]:
        failures.append(f"{folder}: {info}")
    with torch.no_grad():
        return model.eval()(tokens.unsqueeze(0)).logits[0]


# The class looks for MTP at layer 61 alone, that of the published model.
def check_mtp(folder, tokens):
    family = transformers.DeepseekV3ForCausalLM
    layers = transformers.AutoConfig.from_pretrained(folder).num_hidden_layers
    family._keys_to_ignore_on_load_unexpected = [rf"model\.layers\.{layers}\..*"]
    model = family.from_pretrained(folder, dtype=torch.float32)
    how = dict(max_new_tokens=20, do_sample=False, pad_token_id=0)
    plain, drafted = (model.generate(tokens.unsqueeze(0), **how, **more) for more in ({}, {"use_mtp": True}))
    if not torch.equal(plain, drafted):
        failures.append(f"{folder}: other tokens when the MTP module drafts them")


# A token is a byte of UTF-8, there and back, for every byte and for text that is merged nowhere.
def check_tokenizer(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [PROMPT, "", " two  spaces, a\ttab\nand lines\n", "don't, I'LL", "\u00e9\u0142\u4e16\U0001f600", "a" * 300,
             "".join(map(chr, range(128)))]
    for text in texts:
        tokens = tokenizer(text)["input_ids"]
        if tokens != list(text.encode()):
            failures.append(f"{folder}: the tokenizer makes {tokens} of {text!r}")
        if tokenizer.decode(tokens) != text:
            failures.append(f"{folder}: {text!r} comes back as {tokenizer.decode(tokens)!r}")
    # A class may add special tokens of its own behind them (Qwen2's of transformers 5 adds one to pad with).
    plain = {i for i in tokenizer.get_vocab().values() if i not in tokenizer.all_special_ids}
    if plain != set(range(256)):
        failures.append(f"{folder}: the tokenizer has {len(plain)} tokens")


def row(name, way, ours, theirs):
    difference = (ours - theirs).abs().max().item()
    relative = difference / theirs.abs().max().item()
    if f"| {name} | {way} | " not in open(PAGE).read():
        failures.append(f"the table of docs/hugging_face.md has no row for {name}, {way}")
    same = (ours.argmax(-1) == theirs.argmax(-1)).float().mean().item()
    if not relative <= BAR:
        failures.append(f"{name}, {way}: {relative}")
    print(f"| {name} | {way} | {difference:.1e} | {relative:.1e} | {100 * same:.0f} % |", flush=True)


def exported(name, flags, folder):
    checkpoint, out = os.path.join(folder, "checkpoint"), os.path.join(folder, "hf")
    ranklab("train", *flags, "--train-iters", "20", "--global-batch-size", "12" if "--pp" in flags else "8",
            "--eval-interval", "0", "--sample-tokens", "0", "--mock-data", "--no-trace", "--log-dir",
            os.path.join(folder, "log"), "--save", checkpoint)
    ranklab("ckpt", "export-hf", checkpoint, out, "--max-shard-size", "200KB", "--tokenizer", "bytes")
    check_tokenizer(out)
    tokens, ours = our_logits(checkpoint, folder)
    row(name, "trained here, loaded there", ours, their_logits(out, tokens))
    if name == "DeepSeek-V3" and hasattr(transformers.GenerationConfig(), "use_mtp"):
        check_mtp(out, tokens)


# As DeepSeek-V3 and Qwen3 are published: the matrices of layers are codes, a block of 128 x 128 has a scale.
# `folder` gets those; the other one what they mean, in fp32.
def quantize(folder, dequantized):
    codes, values = {}, {}
    for key, tensor in load_file(os.path.join(folder, "model.safetensors")).items():
        codes[key] = tensor
        values[key] = tensor.float()
        if not key.endswith("_proj.weight") and not key.endswith("_with_mqa.weight"):
            continue
        padded = torch.nn.functional.pad(tensor.float(), (0, -tensor.shape[1] % 128, 0, -tensor.shape[0] % 128))
        blocks = padded.reshape(padded.shape[0] // 128, 128, padded.shape[1] // 128, 128)
        scale = (blocks.abs().amax((1, 3)) / 448).to(tensor.dtype)
        wide = scale.float()[:, None, :, None]
        quantized = (blocks / wide).to(torch.float8_e4m3fn)
        rows, columns = tensor.shape
        codes[key] = quantized.reshape(padded.shape)[:rows, :columns].contiguous()
        codes[key + "_scale_inv"] = scale
        values[key] = (quantized.float() * wide).reshape(padded.shape)[:rows, :columns].contiguous()
    shutil.copytree(folder, dequantized)
    save_file(values, os.path.join(dequantized, "model.safetensors"), {"format": "pt"})
    save_file(codes, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    path = os.path.join(folder, "config.json")
    config = json.load(open(path))
    config["quantization_config"] = dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic",
                                         weight_block_size=[128, 128])
    json.dump(config, open(path, "w"))
    return sum(key.endswith("_scale_inv") for key in codes)


# As gpt-oss is published: experts are E2M1 codes with a power of two for each 32 of them, output dimension first.
def quantize_experts(folder, dequantized):
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    codes, values = {}, {}
    for key, tensor in load_file(os.path.join(folder, "model.safetensors")).items():
        codes[key] = values[key] = tensor
        if not key.endswith("_proj") or tensor.dim() != 3:
            continue
        experts, inputs, outputs = tensor.shape
        del codes[key]
        codes[key + "_blocks"] = torch.randint(256, (experts, outputs, inputs // 32, 16), dtype=torch.uint8)
        codes[key + "_scales"] = torch.randint(122, 125, (experts, outputs, inputs // 32), dtype=torch.uint8)
        values[key] = convert_moe_packed_tensors(codes[key + "_blocks"], codes[key + "_scales"]).contiguous()
    shutil.copytree(folder, dequantized)
    save_file(values, os.path.join(dequantized, "model.safetensors"), {"format": "pt"})
    save_file(codes, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    path = os.path.join(folder, "config.json")
    config = json.load(open(path))
    config["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=["lm_head"])
    json.dump(config, open(path, "w"))
    return sum(key.endswith("_blocks") for key in codes)


def imported(name, family, numbers, folder):
    model = random_model(family, numbers)
    if "bf16" in name:
        model = model.bfloat16()
    if "fp16" in name:
        model = model.half()
    out, checkpoint = os.path.join(folder, "hf"), os.path.join(folder, "checkpoint")
    model.save_pretrained(out)
    plain, told = out, []
    if "MXFP4" in name:
        plain = os.path.join(folder, "dequantized")
        told = [f"{quantize_experts(out, plain)} tensors of experts are MXFP4"]
    if "FP8" in name:
        plain = os.path.join(folder, "dequantized")
        told = [f"{quantize(out, plain)} matrices are FP8 in blocks of 128 x 128"]
    notes = json.loads(ranklab("ckpt", "import-hf", out, checkpoint, "--json"))["warnings"]
    if [note.split(":")[0] for note in notes] != told:
        failures.append(f"{name}: {notes}")
    tokens, ours = our_logits(checkpoint, folder)
    row(name, "saved there, imported here", ours, their_logits(plain, tokens))
    if "FP8" not in name and "MXFP4" not in name:
        check_back(name, out, checkpoint, os.path.join(folder, "back"))


def imported_text(name, family, text, numbers, folder):
    torch.manual_seed(7)
    config = getattr(transformers, family + "Config")(text_config={"initializer_range": 0.2, **text},
                                                      image_token_index=299, **numbers)
    whole = getattr(transformers, family + "ForConditionalGeneration")(config).eval()
    out, checkpoint = os.path.join(folder, "hf"), os.path.join(folder, "checkpoint")
    whole.save_pretrained(out)
    beside = sum("language_model." not in key and key != "lm_head.weight" for key in load_file(os.path.join(out, "model.safetensors")))
    notes = json.loads(ranklab("ckpt", "import-hf", out, checkpoint, "--json"))["warnings"]
    if notes != [f"the text model of {family}ForConditionalGeneration: {beside} tensors beside it are ignored"]:
        failures.append(f"{name}: {notes}")
    tokens, ours = our_logits(checkpoint, folder)
    # Llama 4's class fails on text alone.
    model = whole.language_model if family == "Llama4" else whole
    with torch.no_grad():
        row(name, "saved there, imported here", ours, model(input_ids=tokens.unsqueeze(0)).logits[0])


# The experts of a layer in one tensor each, as published: transformers reads both forms, and writes them one by one.
def experts_together(tensors):
    together, layers = dict(tensors), {}
    for key in tensors:
        found = re.match(r"(.*\.mlp\.experts\.)(\d+)\.(gate|up|down)_proj\.weight$", key)
        if found:
            layers.setdefault(found[1], {}).setdefault(found[3], {})[int(found[2])] = together.pop(key)
    for prefix, kinds in layers.items():
        gate, up, down = (torch.stack([kinds[kind][i] for i in sorted(kinds[kind])]) for kind in ("gate", "up", "down"))
        together[prefix + "gate_up_proj"], together[prefix + "down_proj"] = torch.cat([gate, up], 1), down
    return together


# Exported again, a model is what it was: the same class, elements of the same type, bit for bit.
def check_back(name, folder, checkpoint, again):
    ranklab("ckpt", "export-hf", checkpoint, again)
    before, after = (load_file(os.path.join(f, "model.safetensors")) for f in (folder, again))
    if "Qwen3.5-MoE" in name:
        before = experts_together(before)
    if before.keys() != after.keys():
        failures.append(f"{name}: other tensors when it is exported again: {before.keys() ^ after.keys()}")
    for key in before.keys() & after.keys():
        if before[key].dtype != after[key].dtype or not torch.equal(before[key], after[key]):
            failures.append(f"{name}: {key} is not the same when it is exported again")
    configs = [transformers.AutoConfig.from_pretrained(f) for f in (folder, again)]
    for key in ("architectures", "dtype", "rope_interleave", "attention_bias", "sliding_window", "layer_types"):
        one, other = (getattr(config, key, None) for config in configs)
        if one != other:
            failures.append(f"{name}: {key} is {other} when it is exported again, and was {one}")


print(f"transformers {transformers.__version__}, torch {torch.__version__}, fp32; bar {BAR}\n")
print("| model | way | largest difference of a logit | relative | same best token |\n|---|---|---|---|---|")
with tempfile.TemporaryDirectory() as root:
    for i, (name, flags) in enumerate(chosen(OURS)):
        exported(name, flags, os.path.join(root, f"out{i}"))
    for i, (name, (family, numbers)) in enumerate(chosen(THEIRS)):
        imported(name, family, numbers, os.path.join(root, f"in{i}"))
    for i, (name, (family, text, numbers)) in enumerate(chosen(WITH_PICTURES)):
        imported_text(name, family, text, numbers, os.path.join(root, f"text{i}"))
for failure in failures:
    print("FAILED:", failure)
sys.exit(bool(failures))
