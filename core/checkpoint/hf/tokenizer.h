// The tokenizer that ranklab trains with, in the form of Hugging Face's tokenizers: a token is a byte of UTF-8, as a
// BPE without merges whose 256 tokens are bytes in the printable spelling of GPT-2 (Radford et al. 2019, encoder.py).
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace ranklab {

class HfFolder;
struct ModelConfig;

constexpr int64_t kByteTokens = 256;

// tokenizer.json
std::string hf_byte_tokenizer();
// tokenizer_config.json, of a model that reads at most `seq_length` tokens, if one is given, and whose documents end
// with `end_token`, unless it is "".
std::string hf_tokenizer_config(std::optional<int64_t> seq_length, const std::string& end_token);
// ... of a model for export: what was kept of the folder that it came from, else the same.
std::string exported_tokenizer_config(const ModelConfig& config, const std::string& end_token);
// What is kept of a folder: its tokenizer_config.json in one line, without the list of added tokens, which
// tokenizer.json has, and with chat_template.jinja, which newer versions of transformers write beside it and all read
// here. "": it has neither.
std::string kept_tokenizer_config(const HfFolder& folder);

}  // namespace ranklab
