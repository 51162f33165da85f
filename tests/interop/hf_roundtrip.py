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
from hf_ours import OURS
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

BAR = 1e-4
PROMPT = "In the beginning God created the heaven and the earth."
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
