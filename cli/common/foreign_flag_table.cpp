// The options of nano-train, Tinytron, Megatron-LM and torchrun that ranklab names differently or does not have.
#include <algorithm>
#include <charconv>
#include <vector>

#include "cli/common/foreign_flags.h"
#include "cli/common/megatron_flags.h"
#include "cli/common/megatron_split.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/data_choice.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument, {.what = what, .fix = fix});
}

Conversion called(std::string own) {
  return [own = std::move(own)](const Words& values, const Words&) {
    Words words = {own};
    words.insert(words.end(), values.begin(), values.end());
    return words;
  };
}
Conversion missing(std::string fix) {
  return [fix = std::move(fix)](const Words&, const Words&) -> Words { refuse("there is no such option here", fix); };
}
Conversion means(Words own) {
  return [own = std::move(own)](const Words&, const Words&) { return own; };
}
// For an option of which one value describes what ranklab does anyway: accepts this value and rejects others.
Conversion holds(std::string value, std::string fix) {
  return [value = std::move(value), fix = std::move(fix)](const Words& values, const Words&) -> Words {
    if (values[0] != value) refuse("of this option's values only " + value + " exists here", fix);
    return {};
  };
}

bool has(const Words& line, const std::string& name) {
  return std::any_of(line.begin(), line.end(), [&](std::string word) {
    word = word.substr(0, word.find('='));
    std::replace(word.begin(), word.end(), '_', '-');
    return word == name;
  });
}

Words backend(const Words& values, const Words&) {
  if (values[0] == "gloo") return {"--backend", "cpu_sim"};
  if (values[0] == "nccl") return {"--backend", "cuda"};
  return {"--backend", values[0]};
}

// train_4d.py trains a small DeepSeek; other scripts train models that ranklab has no preset for.
Words script(const Words& values, const Words&) {
  if (values[0] == "train_4d.py" || values[0].ends_with("/train_4d.py")) return {"--preset", "deepseek_v3_tiny"};
  refuse("ranklab does not run scripts", "leave --script out and name a model: --preset NAME (ranklab list presets)");
}

// One epoch of a given number of samples needs no option, because --train-samples says the same.
Words epochs(const Words& values, const Words& line) {
  if (values[0] == "1" && has(line, "--mock-data-num-samples")) return {};
  refuse("ranklab counts steps, not epochs",
         "use --train-iters N, or --train-samples N (the sequences of the data, times the epochs)");
}

Words experts(const Words&, const Words& line) {
  if (has(line, "--num-experts")) return {};
  refuse("the number of experts is not given",
         "use --num-experts N (Tinytron's default is 128), or a preset that has them");
}

// Tinytron has one dropout rate for everything.
Words dropout(const Words& values, const Words&) {
  return {"--hidden-dropout", values[0], "--attention-dropout", values[0]};
}

// Tinytron's last step is still profiled; --profile-step-end is the first step that is not.
Words profiled_steps(const Words& values, const Words&) {
  int64_t last = 0;
  const std::string& text = values[1];
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), last);
  if (error != std::errc{} || end != text.data() + text.size() || last < 0 || last > (int64_t{1} << 40))
    refuse("a step is a whole number", "pass the first and the last step, as in --steps_to_profile 15 20");
  return {"--profile-step-start", values[0], "--profile-step-end", std::to_string(last + 1)};
}

// Megatron-LM takes three values, or any number of SAMPLES:SIZE; here one setting holds all of them.
bool is_size_from(std::string_view value) { return value.find(':') != value.npos; }
Words rampup(const Words& values, const Words&) { return {"--rampup-batch-size", join(values, " ")}; }

// Megatron-LM takes alternating weights and paths, or paths alone; here one setting holds all of them.
Words blend(const std::string& own, const Words& values) {
  if (values.size() == 1) return {own, values[0]};
  return {own + "=" + data_text(values, own)};
}
Words data_path(const Words& values, const Words&) { return blend("--data-path", values); }
Words valid_data_path(const Words& values, const Words&) { return blend("--valid-data-path", values); }

// No part of these data is split off for validation.
Words train_data_path(const Words& values, const Words& line) {
  Words words = blend("--data-path", values);
  if (!has(line, "--validation-fraction")) words.insert(words.end(), {"--validation-fraction", "0"});
  return words;
}

Words split(const Words& values, const Words&) {
  const auto parts = parse_megatron_split(values[0]);
  if (!parts) refuse("that is not a list of parts", "write those of training and validation, as in --split 95,5");
  if (parts->test != "0")
    refuse("there is no test split", "use --validation-fraction " + parts->validation +
                                         ", and train on the third part, too; ranklab eval --load CHECKPOINT --text "
                                         "FILE evaluates the trained model");
  return {"--validation-fraction", parts->validation};
}

// Without a number of groups, all query heads share one key and value.
Words grouped_queries(const Words&, const Words& line) {
  if (has(line, "--num-query-groups")) return {};
  return {"--num-query-groups", "1"};
}

// Transformer Engine's graphs record one layer each; "local" are Megatron-LM's own graphs.
Words graphs(const Words& values, const Words&) {
  if (values[0] == "none") return {};
  if (values[0] == "local") return {"--cuda-graph"};
  refuse("CUDA graphs capture whole passes here: local or none, not " + values[0],
         "use --cuda-graph, or leave --cuda-graph-impl out");
}

Words experiment(const Words& values, const Words&) { return {"--log-dir", "runs/" + values[0]}; }
Words without_validation(const Words&, const Words&) { return {"--eval-interval", "0"}; }

// The words for a Megatron-LM flag that is given by itself. Flags that depend on others are converted only by `config
// from-megatron`.
Words own_words(const MegatronFlag& flag) {
  const std::string text = flag.text;
  switch (flag.fate) {
    case MegatronFate::kSet: {
      const ConfigSetting setting = assignment_setting(text);
      const ConfigField& field = field_named(setting.key);
      if (field.kind == ConfigField::Kind::kValue) return {field.flags[0], setting.text};
      return {(setting.text == "true" ? "--" : "--no-") + field.flags[0].substr(2)};
    }
    case MegatronFate::kNoEffect:
      return {};
    case MegatronFate::kLeftOut:
      refuse("Megatron-LM's option has no counterpart; here " + text, "leave it out");
    case MegatronFate::kRefused:
      refuse("ranklab does not compute what this option of Megatron-LM says", text);
    case MegatronFate::kRead:
      if (!text.empty()) refuse("what this option of Megatron-LM means depends on others", text);
      break;
  }
  refuse("what this option of Megatron-LM means depends on others",
         "use ranklab config from-megatron LINE > FILE, which reads whole command lines, and --config FILE");
}

void add_megatrons(std::vector<ForeignFlag>& flags) {
  flags.push_back({"--swiglu", 0, means({"--activation", "swiglu"})});
  flags.push_back({"--squared-relu", 0, means({"--activation", "squared_relu"})});
  flags.push_back({"--group-query-attention", 0, grouped_queries});
  flags.push_back({"--rampup-batch-size", 3, rampup, /*also_own=*/true, /*and_more=*/false, is_size_from});
  flags.push_back({"--data-path", 1, data_path, /*also_own=*/true, /*and_more=*/true});
  flags.push_back({"--cuda-graph-impl", 1, graphs});
  flags.push_back(
      {"--cuda-graph-scope", 1, holds("full_iteration", "leave it out: --cuda-graph records whole passes")});
  flags.push_back({"--train-data-path", 1, train_data_path, /*also_own=*/false, /*and_more=*/true});
  flags.push_back({"--valid-data-path", 1, valid_data_path, /*also_own=*/true, /*and_more=*/true});
  flags.push_back({"--split", 1, split});
  // Added after the flags above, which have a conversion of their own, because the first match is used.
  for (const MegatronFlag& flag : megatron_flags())
    flags.push_back({flag.name, flag.values < 0 ? size_t{1} : static_cast<size_t>(flag.values),
                     [&flag](const Words&, const Words&) { return own_words(flag); }, /*also_own=*/false,
                     /*and_more=*/flag.values < 0});
}

std::vector<ForeignFlag> make_flags() {
  return {
      // nano-train
      {"--max-steps", 1, called("--train-iters")},
      {"--backend", 1, backend, /*also_own=*/true},
      {"--script", 1, script},
      {"--script-args", 0, [](const Words&, const Words&) -> Words { return {}; }},
      {"--fp8-backend", 1, holds("emulated", "leave it out: --device cuda with --fp8 computes in the GPU's own FP8")},
      {"--lowbit-master-ownership", 1, holds("optimizer", "leave it out: the optimizer owns the master weights")},
      // Tinytron: training
      {"--exp-name", 1, experiment},
      {"--use-mock-data", 0, called("--mock-data")},
      {"--mock-data-num-samples", 1, called("--train-samples")},
      {"--total-batch-size", 1, called("--global-batch-tokens")},
      {"--batch-size", 1, called("--micro-batch-size")},
      {"--seq-len", 1, called("--seq-length")},
      {"--max-epochs", 1, epochs},
      {"--debug", 0, without_validation},  // there: neither validation nor checkpoints
      {"--max-lr", 1, called("--lr")},
      {"--grad-clip-value", 1, called("--clip-grad")},
      {"--warmup-steps", 1, called("--lr-warmup-iters")},
      {"--save-every-steps", 1, called("--save-interval")},
      {"--use-compile", 0, missing("leave it out: nothing is compiled, the kernels are the same in every run")},
      {"--use-profiler", 0, called("--profile")},
      {"--steps-to-profile", 2, profiled_steps},
      // Tinytron: the model
      {"--block-size", 1, called("--seq-length")},
      {"--num-layer", 1, called("--num-layers")},
      {"--num-key-value-heads", 1, called("--num-query-groups")},
      {"--intermediate-size", 1, called("--ffn-hidden-size")},
      {"--dropout", 1, dropout},
      {"--tied-lm-head", 0, called("--tie-embeddings")},
      {"--no-tied-lm-head", 0, called("--no-tie-embeddings")},
      {"--use-moe", 0, experts},
      {"--num-experts-per-tok", 1, called("--moe-router-topk")},
      {"--moe-intermediate-size", 1, called("--moe-ffn-hidden-size")},
      // torchrun
      {"--nproc-per-node", 1, called("--world-size")},
      {"--nnodes", 1, missing("use ranklab launch, which takes it")},
      {"--node-rank", 1, missing("use ranklab launch, which takes it")},
      {"--master-addr", 1, missing("use ranklab launch, which takes it")},
  };
}

}  // namespace

std::span<const ForeignFlag> foreign_flags() {
  static const std::vector<ForeignFlag> kFlags = [] {
    std::vector<ForeignFlag> flags = make_flags();
    add_megatrons(flags);
    return flags;
  }();
  return kFlags;
}

}  // namespace ranklab
