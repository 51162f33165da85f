// Reads the steps around the model in a tokenizer.json: normalizer, pre-tokenizer, post-processor and decoder.

#include "core/base/text.h"
#include "core/data/tokenizer/json_reader.h"

namespace ranklab::tokenizers {
namespace {

constexpr size_t kMostSteps = 64;

// Calls `take` with each step of a sequence, which may contain further sequences, or with the only step. Does not
// recurse, because a hostile file may be deeply nested.
void each_step(const JsonReader& in, const Json& first, const char* list,
               const std::function<void(const Json&)>& take) {
  std::vector<const Json*> waiting;
  if (!first.is_null()) waiting.push_back(&first);
  size_t steps = 0;
  while (!waiting.empty()) {
    const Json& step = *waiting.back();
    waiting.pop_back();
    if (++steps > kMostSteps) in.lacks("too many steps", "more than " + std::to_string(kMostSteps), "at most that");
    if (in.text(step, "type") != "Sequence") {
      take(step);
      continue;
    }
    const Json& inner = in.list(step, list);
    for (auto one = inner.rbegin(); one != inner.rend(); ++one) waiting.push_back(&*one);
  }
}

SplitBehavior behavior_of(const JsonReader& in, const Json& step) {
  const std::string name = in.text(step, "behavior");
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  in.refuse("unknown behavior of a split", name.substr(0, 80), "Isolated, Removed, MergedWith... or Contiguous");
}

SplitStep read_split(const JsonReader& in, const Json& step) {
  SplitStep split{.behavior = behavior_of(in, step), .invert = in.flag(step, "invert", false)};
  const Json& pattern = in.member(step, "pattern");
  split.is_regex = !in.member(pattern, "Regex").is_null();
  split.pattern = in.text(pattern, split.is_regex ? "Regex" : "String");
  return split;
}

SplitStep digits(bool individual) {
  return {.pattern = R"(\p{N})", .behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous};
}

// The tokens to which a template refers by name.
void add_template_tokens(const JsonReader& in, const Json& processor, const Json& name, std::vector<uint32_t>& out) {
  const Json& token = in.member(in.member(processor, "special_tokens"), in.text(name, "id").c_str());
  for (const Json& id : in.list(token, "ids")) out.push_back(in.id(id, "ids"));
}

void read_template(const JsonReader& in, const Json& processor, TokenizerSpec& spec) {
  std::vector<uint32_t> before, after;
  bool text_seen = false;
  for (const Json& piece : in.list(processor, "single")) {
    if (const Json& token = in.member(piece, "SpecialToken"); !token.is_null()) {
      add_template_tokens(in, processor, token, text_seen ? after : before);
      continue;
    }
    if (text_seen || in.text(in.member(piece, "Sequence"), "id") != "A")
      in.lacks("a template of one text that has it twice", "two sequences", "one");
    text_seen = true;
  }
  if (!text_seen) in.lacks("a template without the text", "special tokens alone", "a sequence A");
  spec.before.insert(spec.before.begin(), before.begin(), before.end());
  spec.after.insert(spec.after.end(), after.begin(), after.end());
}

}  // namespace

std::vector<NormalForm> read_normalizer(const JsonReader& in, const Json& normalizer) {
  std::vector<NormalForm> forms;
  each_step(in, normalizer, "normalizers", [&](const Json& step) {
    const std::string type = in.text(step, "type");
    if (type == "NFC")
      forms.push_back(NormalForm::kNfc);
    else if (type == "NFD")
      forms.push_back(NormalForm::kNfd);
    else if (type == "NFKC")
      forms.push_back(NormalForm::kNfkc);
    else if (type == "NFKD")
      forms.push_back(NormalForm::kNfkd);
    else
      in.lacks("a normalizer that ranklab does not have", type.substr(0, 80), "NFC, NFD, NFKC, NFKD");
  });
  return forms;
}

PreTokenizerSpec read_pre_tokenizer(const JsonReader& in, const Json& pre_tokenizer) {
  PreTokenizerSpec spec{.gpt2_pattern = false};
  bool has_bytes = false;
  each_step(in, pre_tokenizer, "pretokenizers", [&](const Json& step) {
    const std::string type = in.text(step, "type");
    if (has_bytes) in.lacks("a pre-tokenizer that works on spelled bytes", type.substr(0, 80), "ByteLevel as the last");
    if (type == "ByteLevel") {
      has_bytes = true;
      spec.add_prefix_space = in.flag(step, "add_prefix_space", true);
      spec.gpt2_pattern = in.flag(step, "use_regex", true);
    } else if (type == "Split") {
      spec.splits.push_back(read_split(in, step));
    } else if (type == "Digits") {
      spec.splits.push_back(digits(in.flag(step, "individual_digits", false)));
    } else {
      in.lacks("a pre-tokenizer that ranklab does not have", type.substr(0, 80), "ByteLevel, Split, Digits");
    }
  });
  if (!has_bytes)
    in.lacks("the tokenizer does not work on bytes", "no ByteLevel among its pre-tokenizers", "ByteLevel");
  return spec;
}

void read_post_processor(const JsonReader& in, const Json& post_processor, TokenizerSpec& spec) {
  each_step(in, post_processor, "processors", [&](const Json& step) {
    const std::string type = in.text(step, "type");
    if (type == "ByteLevel") return;  // it only affects offsets in the text
    if (type != "TemplateProcessing")
      in.lacks("a post-processor that ranklab does not have", type.substr(0, 80), "ByteLevel, TemplateProcessing");
    read_template(in, step, spec);
  });
}

void check_decoder(const JsonReader& in, const Json& decoder) {
  each_step(in, decoder, "decoders", [&](const Json& step) {
    if (const std::string type = in.text(step, "type"); type != "ByteLevel")
      in.lacks("a decoder that ranklab does not have", type.substr(0, 80), "ByteLevel");
  });
}

}  // namespace ranklab::tokenizers
