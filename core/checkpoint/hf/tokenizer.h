// The byte tokenizer with which ranklab trains, in the form of Hugging Face's tokenizers: a token is a byte of UTF-8,
// expressed as a BPE without merges whose 256 tokens are bytes in GPT-2's printable spelling (Radford et al. 2019,
// encoder.py). Thread rule: pure.
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
// tokenizer_config.json for a model that reads at most `seq_length` tokens (if given) and whose documents end with
// `end_token` (unless it is "").
std::string hf_tokenizer_config(std::optional<int64_t> seq_length, const std::string& end_token);
// The same for a model that is exported: what was kept of the folder from which it was imported, or else as above.
std::string exported_tokenizer_config(const ModelConfig& config, const std::string& end_token);
// What is kept of a folder: its tokenizer_config.json as one line, without the list of added tokens, which is in
// tokenizer.json, and including chat_template.jinja, which newer versions of transformers write next to it and all of
// them read from tokenizer_config.json. "": it has neither.
std::string kept_tokenizer_config(const HfFolder& folder);

}  // namespace ranklab
