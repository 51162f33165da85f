#include "core/checkpoint/hf/tokenizer.h"

#include <nlohmann/json.hpp>

#include "core/base/byte_alphabet.h"
#include "core/checkpoint/hf/config.h"
#include "core/checkpoint/hf/folder.h"
#include "core/spec/model_config.h"

namespace ranklab {
namespace {

nlohmann::ordered_json byte_vocabulary() {
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  for (int byte = 0; byte < static_cast<int>(kByteTokens); ++byte)
    vocabulary[spelled_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  return vocabulary;
}

}  // namespace

std::string hf_byte_tokenizer() {
  const nlohmann::ordered_json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const nlohmann::ordered_json model = {{"type", "BPE"},
                                        {"dropout", nullptr},
                                        {"unk_token", nullptr},
                                        {"continuing_subword_prefix", nullptr},
                                        {"end_of_word_suffix", nullptr},
                                        {"fuse_unk", false},
                                        {"byte_fallback", false},
                                        {"vocab", byte_vocabulary()},
                                        {"merges", nlohmann::ordered_json::array()}};
  const nlohmann::ordered_json file = {{"version", "1.0"},
                                       {"truncation", nullptr},
                                       {"padding", nullptr},
                                       {"added_tokens", nlohmann::ordered_json::array()},
                                       {"normalizer", nullptr},
                                       {"pre_tokenizer", bytes},
                                       {"post_processor", nullptr},
                                       {"decoder", bytes},
                                       {"model", model}};
  return file.dump(2) + "\n";
}

std::string hf_tokenizer_config(std::optional<int64_t> seq_length, const std::string& end_token) {
  nlohmann::ordered_json file = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (seq_length) file["model_max_length"] = *seq_length;
  if (!end_token.empty()) file["eos_token"] = end_token;
  file["clean_up_tokenization_spaces"] = false;
  file["model_input_names"] = {"input_ids", "attention_mask"};
  return file.dump(2) + "\n";
}

std::string exported_tokenizer_config(const ModelConfig& config, const std::string& end_token) {
  if (config.hf_tokenizer_config.empty()) return hf_tokenizer_config(config.seq_length, end_token);
  return parse_hf_json(config.hf_tokenizer_config, "--hf-tokenizer-config").dump(2, ' ', true) + "\n";
}

std::string kept_tokenizer_config(const HfFolder& folder) {
  constexpr const char *kConfig = "tokenizer_config.json", *kTemplate = "chat_template.jinja";
  const std::string text = folder.text_of(kConfig), chat = folder.text_of(kTemplate);
  if (text.empty() && chat.empty()) return "";
  HfJson file = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (!text.empty()) file = parse_hf_json(text, folder.where() + "/" + kConfig);
  file.erase("added_tokens_decoder");
  if (!chat.empty()) file["chat_template"] = chat;
  // Template text that is not UTF-8 is replaced, because JSON cannot represent it.
  return file.dump(-1, ' ', true, HfJson::error_handler_t::replace);
}

}  // namespace ranklab
