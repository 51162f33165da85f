// Settings of rotary position embeddings, and of how a model is written as a Hugging Face folder.
#include <type_traits>

#include "core/config/settings/field_makers.h"

namespace ranklab::fields {
namespace {

// "1,1.05,1.2"
template <typename Access>
ConfigField numbers(std::string key, Flags flags, std::string help, Access access) {
  ConfigField field{std::move(key), std::move(flags), std::move(help)};
  field.get = [access](const TrainConfig& config) {
    std::vector<std::string> parts;
    for (const auto value : read(access, config)) parts.push_back(to_text(value));
    return join(parts, ",");
  };
  field.set = [access, field](TrainConfig& config, const std::string& text) {
    std::decay_t<decltype(access(config))> values;
    const std::vector<std::string> parts = text.empty() ? std::vector<std::string>{} : split(text, ',');
    for (const std::string& part : parts)
      values.push_back(parse_number<typename decltype(values)::value_type>(field, part));
    access(config) = std::move(values);
  };
  return field;
}

}  // namespace

void add_rotary(FieldRows& rows) {
  rows.begin("Rotary positions");
  rows.number("model.rope_theta", {"--rotary-base"}, "base of the rotary frequencies", RANKLAB_FIELD(model.rope_theta),
              above(0));
  rows.number("model.local_rope_theta", {"--rotary-base-local"},
              "base of the rotary frequencies of layers with a window, which are not scaled (0: as in other layers)",
              RANKLAB_FIELD(model.local_rope_theta), at_least(0));
  rows.number("model.rotary_percent", {"--rotary-percent"}, "fraction of a head that is rotated",
              RANKLAB_FIELD(model.rotary_percent),
              {.least = 0, .most = 1, .without_least = true, .words = "above 0, at most 1"});
  rows.flag("model.rotary_interleaved", {"--rotary-interleaved"},
            "rotate adjacent elements of a head instead of its halves (GPT-J, Meta's LLaMA)",
            RANKLAB_FIELD(model.rotary_interleaved));
  rows.choice("model.rope_scaling_type", {"--rope-scaling-type"},
              "scaling of the rotary frequencies: all by the same factor (linear), by the sequence length "
              "(dynamic), only slow ones (llama3), each by its own factor (longrope)",
              {"none", "linear", "dynamic", "llama3", "longrope"}, RANKLAB_FIELD(model.rope_scaling.kind));
  rows.number("model.rope_scaling_factor", {"--rope-scaling-factor"}, "factor of that scaling",
              RANKLAB_FIELD(model.rope_scaling.factor), at_least(1));
  rows.number("model.rope_scaling_original_length", {"--rope-scaling-original-length"},
              "dynamic, llama3, longrope: original sequence length, before scaling",
              RANKLAB_FIELD(model.rope_scaling.original_seq_length), within(1, 1 << 24));
  rows.number("model.rope_low_freq_factor", {"--rope-low-freq-factor"},
              "llama3: frequencies with fewer rotations than this within that length are fully scaled",
              RANKLAB_FIELD(model.rope_scaling.low_freq_factor), above(0));
  rows.number("model.rope_high_freq_factor", {"--rope-high-freq-factor"},
              "llama3: frequencies with more rotations than this are not scaled",
              RANKLAB_FIELD(model.rope_scaling.high_freq_factor), above(0));
  rows.add(numbers("model.rope_short_factors", {"--rope-short-factors"},
                   "longrope: divisor of each frequency for sequences up to that length",
                   RANKLAB_FIELD(model.rope_scaling.short_factors)));
  rows.add(numbers("model.rope_long_factors", {"--rope-long-factors"},
                   "longrope: divisor of each frequency for longer sequences",
                   RANKLAB_FIELD(model.rope_scaling.long_factors)));
  rows.number("model.rope_attention_factor", {"--rope-attention-factor"},
              "longrope: scaling factor of queries and keys (0: from the factor and the length)",
              RANKLAB_FIELD(model.rope_scaling.attention_factor), at_least(0));
}

void add_yarn(FieldRows& rows) {
  rows.begin("Rotary positions");
  rows.number("yarn.scaling_factor", {"--rotary-scaling-factor"},
              "YaRN: scaling factor of the rotary frequencies (1: off)", RANKLAB_FIELD(model.yarn.scaling_factor),
              at_least(1));
  rows.number("yarn.original_seq_length", {"--original-max-position-embeddings"},
              "YaRN: original sequence length, before scaling", RANKLAB_FIELD(model.yarn.original_seq_length),
              within(1, 1 << 24));
  rows.number("yarn.beta_fast", {"--beta-fast"}, "YaRN: frequencies with more rotations than this are not scaled",
              RANKLAB_FIELD(model.yarn.beta_fast), above(0));
  rows.number("yarn.beta_slow", {"--beta-slow"}, "YaRN: frequencies with fewer rotations than this are fully scaled",
              RANKLAB_FIELD(model.yarn.beta_slow), above(0));
  rows.number("yarn.mscale", {"--mscale"}, "YaRN: coefficient of the attention scaling of queries and keys",
              RANKLAB_FIELD(model.yarn.mscale), at_least(0));
  rows.number(
      "yarn.mscale_all_dim", {"--mscale-all-dim"},
      "YaRN: coefficient of the factor that --mscale is divided by; with latent attention it also scales the scores",
      RANKLAB_FIELD(model.yarn.mscale_all_dim), at_least(0));
  rows.number("yarn.attention_factor", {"--yarn-attention-factor"},
              "YaRN: scaling factor of queries and keys, replaces both --mscale values (0: not given)",
              RANKLAB_FIELD(model.yarn.attention_factor), at_least(0));
  rows.flag("yarn.truncate", {"--yarn-truncate"}, "YaRN: round the range of partly scaled frequencies to whole pairs",
            RANKLAB_FIELD(model.yarn.truncate));
}

void add_hugging_face(FieldRows& rows) {
  rows.begin("Hugging Face folders (ckpt export-hf)");
  rows.text(
      "model.hf_architecture", {"--hf-architecture"},
      "architecture to export as, where several classes compute the same", RANKLAB_FIELD(model.hf_architecture),
      {"auto", "Ernie4_5ForCausalLM", "GraniteForCausalLM", "GraniteMoeForCausalLM", "MistralForCausalLM",
       "Olmo3ForCausalLM", "Phi3ForCausalLM", "Qwen3_5MoeForCausalLM", "SeedOssForCausalLM", "SmolLM3ForCausalLM"});
  rows.flag("model.hf_rope_interleave", {"--hf-rope-interleave"},
            "latent attention: rows that rotate together are adjacent, not halves",
            RANKLAB_FIELD(model.hf_rope_interleave));
  rows.number("model.hf_bos_token", {"--hf-bos-token"}, "id of the begin-of-text token (-1: none)",
              RANKLAB_FIELD(model.hf_bos_token), at_least(-1));
  rows.add(numbers("model.hf_eos_tokens", {"--hf-eos-tokens"},
                   "ids of the end-of-text tokens at which generate() of transformers stops",
                   RANKLAB_FIELD(model.hf_eos_tokens)));
  rows.text("model.hf_generation_config", {"--hf-generation-config"},
            "generation_config.json as one line of JSON (none unless given)",
            RANKLAB_FIELD(model.hf_generation_config));
  rows.text("model.hf_tokenizer_config", {"--hf-tokenizer-config"},
            "tokenizer_config.json as one line of JSON, with the chat template (generated unless given)",
            RANKLAB_FIELD(model.hf_tokenizer_config));
  rows.number("model.hf_pad_token", {"--hf-pad-token"}, "id of the padding token (-1: none)",
              RANKLAB_FIELD(model.hf_pad_token), at_least(-1));
}

}  // namespace ranklab::fields
