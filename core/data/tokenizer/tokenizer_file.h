// Reads and writes Hugging Face's tokenizer.json, and reads the older pair of vocab.json and merges.txt. What is read
// is a byte-level BPE as GPT-2, Llama 3, Qwen and DeepSeek-V3 have it; another model (unigram, WordPiece, SentencePiece
// with bytes to fall back on) is refused. Cost: some 12 bytes of memory a byte of the file while it is read.
// Thread rule: pure.
#pragma once
#include <string>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

// `path` is for messages. Throws kBadFile (damaged) or kInvalidArgument (what ranklab does not have).
TokenizerSpec read_tokenizer_json(const std::string& text, const std::string& path);
// The file that read_tokenizer_json() reads back to the same.
std::string tokenizer_json(const TokenizerSpec& spec);

// `config`: the text of tokenizer_config.json, which names the tokenizer's class and its added tokens, or "".
TokenizerSpec read_vocab_and_merges(const std::string& vocab, const std::string& merges, const std::string& config,
                                    const std::string& folder);

}  // namespace ranklab
