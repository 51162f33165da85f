#include "core/checkpoint/hf_tokenizer.h"

#include <nlohmann/json.hpp>

namespace ranklab {
namespace {

// Code points below 0x800.
std::string utf8(int code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

// A byte that prints in Latin-1 stands for itself; the others get the code points from 256 on, in order.
bool prints(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

nlohmann::ordered_json byte_vocabulary() {
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  int unprinted = 256;
  for (int byte = 0; byte < static_cast<int>(kByteTokens); ++byte)
    vocabulary[utf8(prints(byte) ? byte : unprinted++)] = byte;
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

std::string hf_byte_tokenizer_config(int64_t seq_length) {
  const nlohmann::ordered_json file = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                       {"model_max_length", seq_length},
                                       {"clean_up_tokenization_spaces", false},
                                       {"model_input_names", {"input_ids", "attention_mask"}}};
  return file.dump(2) + "\n";
}

}  // namespace ranklab
