"""`ranklab eval --tasks` held to EleutherAI's LM Evaluation Harness: the same model, exported for Hugging Face, answers the
same JSON lines there with the same log-likelihoods, acc and acc_norm. Run with a Python that has the package (it brings
torch and transformers, several GB):

    pip install lm-eval transformers accelerate
    python tests/interop/eval_harness.py build/release/bin/ranklab

Prints both and ends with 1 when they differ. Choices are ASCII: acc_norm divides by their characters there, by their
bytes here."""
import json
import os
import random
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import lm_eval
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

BAR = 1e-4
NAMES = ["shepherd", "captain", "river", "teacher", "sparrow", "king", "fisherman", "daughter"]
VERBS = ["carries", "remembers", "finds", "crosses", "leaves", "waits for"]
THINGS = ["the golden field", "a broken boat", "bread and salt", "the first light", "an open door", "a letter"]
MODEL = ["--num-layers", "3", "--hidden-size", "64", "--ffn-hidden-size", "96", "--num-attention-heads", "4",
         "--num-query-groups", "2", "--seq-length", "64", "--vocab-size", "420"]


def sentence(rng, name=None, verb=None):
    name = name or rng.choice(NAMES)
    thing = THINGS[(NAMES.index(name) * 5 + len(name)) % len(THINGS)] if rng.random() < 0.8 else rng.choice(THINGS)
    return f"The {name} {verb or rng.choice(VERBS)} {thing} before the evening."


def write_tasks(path, rng, count):
    """Queries of one and of several sentences, with a space at the end, with what the tokenizer cuts within words."""
    with open(path, "w", encoding="utf-8") as out:
        for number in range(count):
            name, verb = rng.choice(NAMES), rng.choice(VERBS)
            before = " ".join(sentence(rng) for _ in range(number % 3))
            query = f"{before} The {name} {verb}".strip() + (" " if number % 5 == 0 else "")
            if number % 7 == 0:
                query = f"Zürich, 北京: {query}"
            choices = rng.sample(THINGS, 3) + [rng.choice(["xylophones", "the", "42 of them, or 43"])]
            json.dump({"query": query, "choices": choices, "gold": rng.randrange(4)}, out, ensure_ascii=False)
            out.write("\n")


def ranklab(program, folder, *arguments):
    done = subprocess.run([program, *arguments], cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"ranklab {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def harness(folder, tasks):
    """acc, acc_norm and the log-likelihoods of every choice, as the harness has them."""
    config = {"task": "choices_of_a_file", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": tasks}},
              "test_split": "test", "output_type": "multiple_choice", "doc_to_text": "{{query}}", "doc_to_choice": "{{choices}}",
              "doc_to_target": "gold", "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}]}
    model = HFLM(pretrained=folder, device="cpu", dtype="float32", batch_size=1)
    found = lm_eval.simple_evaluate(model=model, tasks=[config], task_manager=TaskManager(include_defaults=False),
                                    log_samples=True, bootstrap_iters=0)
    result = found["results"]["choices_of_a_file"]
    samples = sorted(found["samples"]["choices_of_a_file"], key=lambda sample: sample["doc_id"])
    likelihoods = [[float(answer[0][0]) for answer in sample["resps"]] for sample in samples]
    return result["acc,none"], result["acc_norm,none"], likelihoods


def main():
    program = os.path.abspath(sys.argv[1])
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "text.txt"), "w", encoding="utf-8") as out:
            out.write("\n".join(sentence(rng) for _ in range(3000)))
        write_tasks(os.path.join(folder, "tasks.jsonl"), rng, 60)
        ranklab(program, folder, "data", "tokenizer", "train", "text.txt", "--vocab-size", "400", "-o", "tok")
        ranklab(program, folder, "data", "prepare", "text.txt", "--tokenizer", "tok", "--out", "shards")
        ranklab(program, folder, "train", *MODEL, "--data-path", "shards", "--world-size", "4", "--tp", "2", "--gbs", "16",
                "--train-iters", "60", "--lr", "5e-3", "--eval-interval", "0", "--sample-tokens", "0", "--no-trace",
                "--save", "ck", "--log-dir", "run")
        ranklab(program, folder, "ckpt", "export-hf", "ck", "hf")
        want_acc, want_norm, want = harness(os.path.join(folder, "hf"), os.path.join(folder, "tasks.jsonl"))
        print(f"harness {lm_eval.__version__}: acc {want_acc:.4f}, acc_norm {want_norm:.4f}, {len(want)} tasks")
        bad = 0
        for load, layout in [("ck", ["--tp", "2", "--world-size", "4"]), ("hf", ["--pp", "3", "--world-size", "3"])]:
            got = json.loads(ranklab(program, folder, "eval", "--load", load, "--tasks", "tasks.jsonl", "--json", *layout))
            got = got["data"]["tasks"]
            answers = [answer["log_likelihood"] for answer in got["answers"]]
            worst = max(abs(a - b) for ours, theirs in zip(answers, want, strict=True)
                        for a, b in zip(ours, theirs, strict=True))
            bad += worst > BAR or got["acc"] != want_acc or got["acc_norm"] != want_norm
            print(f"ranklab eval --load {load} {' '.join(layout)}: acc {got['acc']:.4f}, acc_norm {got['acc_norm']:.4f}, "
                  f"log-likelihoods within {worst:.1e}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
