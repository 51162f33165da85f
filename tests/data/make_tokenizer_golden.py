"""Tokenizers of the families' own normalizers, patterns and switches, trained and run by Hugging Face's package tokenizers (0.23).

    python tests/data/make_tokenizer_golden.py                    writes tests/data/tokenizers/ anew, which a test reads
    python tests/data/make_tokenizer_golden.py --check RANKLAB    compares 5 MB of mixed text: ids, training, decoding
        [TOKENIZER.json ...]                                      and the ids of other tokenizers

Characters whose normal forms the package does not know, because they are newer than its tables (Unicode 9), are left out.
Ends with 1 when an id differs."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("RAYON_NUM_THREADS", "1")
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from mixed_text import CONTRACTIONS, EMOJI, MARKS, SENTENCES, SPACES, SPECIAL, mixed_text, odd_characters

HERE = pathlib.Path(__file__).parent
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def splits(*patterns):
    return pre_tokenizers.Sequence([*(pre_tokenizers.Split(Regex(p), "isolated") for p in patterns), BYTES])


STYLES = {
    "gpt2": (None, pre_tokenizers.ByteLevel(add_prefix_space=False), False),
    "llama3": (None, splits(CL100K % r"\p{N}{1,3}"), True),
    "qwen2": (normalizers.NFC(), splits(CL100K % r"\p{N}"), False),
    "deepseek_v3": (None, splits(*DEEPSEEK), False),
    # None's, but every switch that a file may have.
    "odd": (normalizers.Sequence([normalizers.NFD(), normalizers.NFKC()]),
            pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\w+"), "merged_with_previous"),
                                     pre_tokenizers.Digits(individual_digits=False),
                                     pre_tokenizers.Split("-", "merged_with_next"), pre_tokenizers.Split(Regex(r"[\s_]"), "contiguous"),
                                     pre_tokenizers.Split(Regex(r"#+"), "removed"), pre_tokenizers.Split(Regex(r"[A-Z][a-z]*"), "isolated", True),
                                     pre_tokenizers.ByteLevel(add_prefix_space=True)]), True),
}


def newer_characters():
    """Alone or among marks, in a normal form that is not Python's."""
    forms = [(getattr(normalizers, name)(), name) for name in ("NFC", "NFD", "NFKC")]
    return frozenset(c for c in odd_characters() for ours, name in forms
                     for text in [c, "a\u0301" + c + "\u0323"] if ours.normalize_str(text) != unicodedata.normalize(name, text))


def add_tokens(tokenizer, style):
    """Beside the one that training knew."""
    tokenizer.add_special_tokens([AddedToken("<|begin_of_text|>"), AddedToken("<mask>", lstrip=True), AddedToken("<pad>", rstrip=True),
                                  AddedToken("<|im_start|>"), AddedToken("<|im_")])
    tokenizer.add_tokens([AddedToken("Kernel", single_word=True), AddedToken("Amélie", normalized=True), AddedToken("Zoe\u0308", normalized=True), AddedToken("<|end", normalized=False)])
    template = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[
        ("<|begin_of_text|>", tokenizer.token_to_id("<|begin_of_text|>"))])
    if style == "llama3":
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    elif style == "odd":
        tokenizer.post_processor = template
    else:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)


def trained(style, texts, vocab_size, min_frequency=2):
    normalizer, pre_tokenizer, ignore_merges = STYLES[style]
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, show_progress=False, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def model_of(text):
    """Vocabulary and merges, with merges in one form."""
    model = json.loads(text)["model"]
    return model["vocab"], [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]


def write_golden():
    cases = [*SENTENCES, *(e + e for e in EMOJI), *("a" + s + "b" + s for s in SPACES), *("x " + s + " y" for s in SPECIAL), "<pad>  <mask>  <mask><pad>", "Zoe\u0308 Zo\u00eb",
             *(c + " end" for c in CONTRACTIONS), "", *("o" + a + b + "k" for a, b in zip(MARKS, reversed(MARKS)))]
    newer = newer_characters()
    cases += [mixed_text(300, seed, newer) for seed in range(8)]
    corpus = [*SENTENCES, *(mixed_text(1000, seed, newer) for seed in range(100, 105))]
    golden = {"tokenizers": tokenizers.__version__, "corpus": corpus, "cases": cases, "ids": {}}
    for style in STYLES:
        tokenizer = trained(style, corpus, 600)
        add_tokens(tokenizer, style)
        tokenizer.save(str(HERE / "tokenizers" / f"{style}.json"), pretty=False)
        golden["ids"][style] = [e.ids for e in tokenizer.encode_batch(cases)]
    text = json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace("],[", "],\n[").replace('","', '",\n"')
    (HERE / "tokenizers" / "golden.json").write_text(text + "\n")


def ranklab_json(program, *words):
    ran = subprocess.run([program, "data", "tokenizer", *words, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(ran.stdout)["data"]


def check(program, others, size=5_000_000):
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        text_path = f"{folder}/mixed.txt"
        text = mixed_text(size, without=newer_characters())
        pathlib.Path(text_path).write_bytes(text.encode())
        print(f"tokenizers {tokenizers.__version__}, {len(text.encode()):,} bytes of mixed text")
        for style in STYLES:
            # As tokenizers.train(files): a line is a text.
            tokenizer = trained(style, re.findall(r"[^\n]*\n|[^\n]+", text), 8000)
            note = ""
            if style != "odd":
                ranklab_json(program, "train", text_path, "--style", style, "--vocab-size", "8000", "-o", f"{folder}/{style}", "--min-frequency", "2")
                ours = Tokenizer.from_file(f"{folder}/{style}/tokenizer.json")
                sample = text[:200_000]
                same = model_of(ours.to_str()) == model_of(tokenizer.to_str()) and ours.encode(sample).ids == tokenizer.encode(sample).ids
                note = f", training {'equal' if same else 'DIFFERENT'}"
                different += not same
            plain = tokenizer.encode(text).ids  # the package spells added tokens as bytes when it decodes; ours are their own text
            back = tokenizer.decode(plain, skip_special_tokens=False)
            path = f"{folder}/{style}.json"
            tokenizer.save(path)
            pathlib.Path(f"{folder}/ids").write_text(" ".join(map(str, plain)))
            wrong_text = ranklab_json(program, "decode", f"{folder}/ids", "--tokenizer", path)["text"] != back
            add_tokens(tokenizer, style)
            tokenizer.save(path)
            begin = time.time()
            want = tokenizer.encode(text).ids
            theirs = time.time() - begin
            result = ranklab_json(program, "encode", text_path, "--tokenizer", path)
            got = result["tokens"]
            wrong = sum(a != b for a, b in zip(got, want)) + abs(len(got) - len(want))
            different += wrong + wrong_text
            print(f"{style:12} {len(want):9,} ids, {wrong} differ{note}, decoded text {'DIFFERS' if wrong_text else 'equal'}"
                  f" (the package encodes {size / theirs / 1e6:.1f} MB/s)", flush=True)
        for path in others:
            want = Tokenizer.from_file(path).encode(text).ids
            got = ranklab_json(program, "encode", text_path, "--tokenizer", path)["tokens"]
            wrong = sum(a != b for a, b in zip(got, want)) + abs(len(got) - len(want))
            different += wrong
            print(f"{path}: {len(want):,} ids, {wrong} differ", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(sys.argv[2], sys.argv[3:]))
    write_golden()
