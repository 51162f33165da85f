// Reads and writes Hugging Face's tokenizer.json, and reads the older pair of vocab.json and merges.txt. Supports
// byte-level BPE as used by GPT-2, Llama 3, Qwen and DeepSeek-V3; other models (unigram, WordPiece, SentencePiece with
// byte fallback) are refused. Cost: about 12 bytes of memory per byte of the file while it is read. Thread rule: pure.
#pragma once
#include <string>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

// `path` is used in messages. Throws kBadFile (damaged) or kInvalidArgument (a feature that ranklab does not have).
TokenizerSpec read_tokenizer_json(const std::string& text, const std::string& path);
// A file from which read_tokenizer_json() reads the same tokenizer.
std::string tokenizer_json(const TokenizerSpec& spec);

// `config`: the text of tokenizer_config.json, which gives the tokenizer's class and its added tokens, or "".
TokenizerSpec read_vocab_and_merges(const std::string& vocab, const std::string& merges, const std::string& config,
                                    const std::string& folder);

}  // namespace ranklab
