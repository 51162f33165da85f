// An input of `ranklab data prepare` as a stream of tokens, whatever its format: text and JSON lines with a text in
// each (a token is a byte, or what a tokenizer makes of them), or files of tokens as other trainers write them. A row
// of kFormats in token_input.cpp is a format. With an end token, each document is followed by it (Megatron-LM's
// --append-eod): a text file is one document, a line of JSON is one, and an empty one is none. Cost: one pass over the
// file, at most a line of it in memory; a tokenizer has a whole document there. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/files/input_file.h"

namespace ranklab {

class Tokenizer;

// How inputs become tokens. A continued preparation must say the same.
struct InputFormat {
  std::string from = "text";                         // a name of input_formats()
  std::optional<uint32_t> end_token = std::nullopt;  // after each document
  std::string json_key = "text";                     // of the text in a line of JSON
  std::string tokenizer = {};                        // its hash; "": bytes
  bool operator==(const InputFormat&) const = default;
};

constexpr size_t kBlockTokens = 1 << 16;  // read at once

class TokenInput {
 public:
  virtual ~TokenInput() = default;
  // RETURNS: tokens read, fewer than requested only at the end. Throws kBadFile naming the file and the place in it.
  virtual size_t read(std::span<uint32_t> out) = 0;
  // As if so many tokens had been read. REQUIRES: nothing was read yet, and they exist.
  virtual void skip(uint64_t tokens);
};

std::vector<std::string> input_formats();

// The file of an input that holds its tokens: of Megatron-LM's PREFIX, its users' name of two files, PREFIX.bin.
std::string tokens_file(const std::string& path, const InputFormat& format);

// With "text", a file whose name ends in .jsonl or .json holds lines of JSON. `tokenizer`: of text, null for bytes; it
// outlives the input; other formats hold its tokens already. Throws kInvalidArgument (an end token for such a format),
// kBadFile or kIo.
std::unique_ptr<TokenInput> open_token_input(const std::string& path, const InputFormat& format,
                                             Tokenizer* tokenizer = nullptr);
bool is_json_lines(const std::string& path);

struct ScannedInput {
  uint64_t tokens = 0;
  uint32_t largest = 0;
};

// Reads all of it, so that what is wrong with it is said before anything is written.
ScannedInput scan_input(const std::string& path, const InputFormat& format, Tokenizer* tokenizer = nullptr);

}  // namespace ranklab
