#include "core/data/tokenizer/tokenizer_styles.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// Applies one pattern after another before the bytes.
PreTokenizerSpec isolated(std::initializer_list<const char*> patterns) {
  PreTokenizerSpec spec{.gpt2_pattern = false};
  for (const char* pattern : patterns) spec.splits.push_back({.pattern = pattern});
  return spec;
}

void set_gpt2(TokenizerSpec& spec) {
  spec.normal_forms = {};
  spec.pre_tokenizer = {};
  spec.ignore_merges = false;
}

// meta-llama/Meta-Llama-3-8B, the same as OpenAI's cl100k_base: at most three digits per word.
void set_llama3(TokenizerSpec& spec) {
  spec.normal_forms = {};
  spec.pre_tokenizer = isolated(
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"});
  spec.ignore_merges = true;
}

// Qwen/Qwen2.5-7B and Qwen3: each digit is a word.
void set_qwen2(TokenizerSpec& spec) {
  spec.normal_forms = {NormalForm::kNfc};
  spec.pre_tokenizer = isolated(
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"});
  spec.ignore_merges = false;
}

// deepseek-ai/DeepSeek-V3: digits first, then Chinese and Japanese, then the rest.
void set_deepseek_v3(TokenizerSpec& spec) {
  spec.normal_forms = {};
  spec.pre_tokenizer = isolated(
      {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
       R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"});
  spec.ignore_merges = false;
}

constexpr std::array kStyles = {
    TokenizerStyle{"gpt2", "GPT-2: letters, digits and signs each with the space before them", "GPT2Tokenizer",
                   set_gpt2},
    TokenizerStyle{"llama3", "Llama 3: at most three digits, line ends by themselves", "", set_llama3},
    TokenizerStyle{"qwen2", "Qwen 2 and 3: NFC, each digit by itself", "Qwen2Tokenizer", set_qwen2},
    TokenizerStyle{"deepseek_v3", "DeepSeek-V3: digits, then Chinese and Japanese, then the rest", "", set_deepseek_v3},
};

}  // namespace

std::span<const TokenizerStyle> tokenizer_styles() { return kStyles; }

const TokenizerStyle& tokenizer_style(const std::string& name) {
  for (const TokenizerStyle& style : kStyles)
    if (name == style.name) return style;
  throw Error(ErrorKind::kInvalidArgument, {.where = "--style",
                                            .what = "no such style of tokenizers",
                                            .got = quote(name),
                                            .want = join(row_names(kStyles), " | "),
                                            .fix = "pass one of them"});
}

const TokenizerStyle* style_of_class(std::string_view hf_class) {
  if (hf_class.ends_with("Fast")) hf_class.remove_suffix(4);
  const auto style = std::find_if(kStyles.begin(), kStyles.end(), [&](const TokenizerStyle& one) {
    return one.hf_class[0] != '\0' && hf_class == one.hf_class;
  });
  return style == kStyles.end() ? nullptr : &*style;
}

}  // namespace ranklab
