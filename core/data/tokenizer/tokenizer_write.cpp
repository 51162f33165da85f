#include <array>
#include <nlohmann/json.hpp>

#include "core/data/tokenizer/tokenizer_file.h"

namespace ranklab {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson normalizer_json(const std::vector<NormalForm>& forms) {
  constexpr std::array kNames = {"NFC", "NFD", "NFKC", "NFKD"};
  OrderedJson steps = OrderedJson::array();
  for (const NormalForm form : forms) steps.push_back({{"type", kNames[static_cast<size_t>(form)]}});
  if (steps.empty()) return nullptr;
  return steps.size() == 1 ? steps[0] : OrderedJson{{"type", "Sequence"}, {"normalizers", steps}};
}

OrderedJson bytes_json(bool prefix, bool gpt2_pattern) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}, {"use_regex", gpt2_pattern}};
}

OrderedJson pre_tokenizer_json(const PreTokenizerSpec& spec) {
  constexpr std::array kNames = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  OrderedJson steps = OrderedJson::array();
  for (const SplitStep& step : spec.splits)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{step.is_regex ? "Regex" : "String", step.pattern}}},
                     {"behavior", kNames[static_cast<size_t>(step.behavior)]},
                     {"invert", step.invert}});
  steps.push_back(bytes_json(spec.add_prefix_space, spec.gpt2_pattern));
  return steps.size() == 1 ? steps[0] : OrderedJson{{"type", "Sequence"}, {"pretokenizers", steps}};
}

OrderedJson added_json(const std::vector<AddedToken>& tokens) {
  OrderedJson added = OrderedJson::array();
  for (const AddedToken& token : tokens)
    added.push_back({{"id", token.id},
                     {"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  return added;
}

OrderedJson post_processor_json(const TokenizerSpec& spec) {
  if (spec.before.empty() && spec.after.empty()) return bytes_json(true, true);
  OrderedJson single = OrderedJson::array(), tokens = OrderedJson::object();
  const auto put = [&](const std::vector<uint32_t>& ids) {
    for (const uint32_t id : ids) {
      const std::string name = std::to_string(id);
      single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
      tokens[name] = {{"id", name}, {"ids", OrderedJson::array({id})}, {"tokens", OrderedJson::array({name})}};
    }
  };
  put(spec.before);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  put(spec.after);
  return {
      {"type", "TemplateProcessing"}, {"single", single}, {"pair", OrderedJson::array()}, {"special_tokens", tokens}};
}

// Appended directly, because an ordered object would compare each key with all earlier ones.
OrderedJson vocab_json(const TokenizerSpec& spec) {
  OrderedJson::object_t vocab;
  vocab.reserve(spec.vocab.size());
  for (const auto& [token, id] : spec.vocab) vocab.Container::emplace_back(token, id);
  return vocab;
}

OrderedJson merges_json(const TokenizerSpec& spec) {
  std::vector<const std::string*> names(spec.vocab.empty() ? 0 : spec.vocab.back().second + size_t{1});
  for (const auto& [token, id] : spec.vocab) names[id] = &token;
  OrderedJson merges = OrderedJson::array();
  for (const MergeRule& merge : spec.merges) merges.push_back({*names[merge.left], *names[merge.right]});
  return merges;
}

}  // namespace

std::string tokenizer_json(const TokenizerSpec& spec) {
  OrderedJson unk = nullptr;
  for (const auto& [token, id] : spec.vocab)
    if (spec.unk == id) unk = token;
  const OrderedJson model = {{"type", "BPE"},
                             {"dropout", nullptr},
                             {"unk_token", unk},
                             {"continuing_subword_prefix", nullptr},
                             {"end_of_word_suffix", nullptr},
                             {"fuse_unk", spec.fuse_unk},
                             {"byte_fallback", false},
                             {"ignore_merges", spec.ignore_merges},
                             {"vocab", vocab_json(spec)},
                             {"merges", merges_json(spec)}};
  const OrderedJson file = {{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", added_json(spec.added)},
                            {"normalizer", normalizer_json(spec.normal_forms)},
                            {"pre_tokenizer", pre_tokenizer_json(spec.pre_tokenizer)},
                            {"post_processor", post_processor_json(spec)},
                            {"decoder", bytes_json(true, true)},
                            {"model", model}};
  return file.dump(1) + "\n";
}

}  // namespace ranklab
