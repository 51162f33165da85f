// An input of `ranklab data prepare` as a stream of tokens, whatever its format: text, and JSON lines that each contain
// a text (a token is a byte, or a token of a tokenizer), or token files of other trainers. Each row of kFormats in
// token_input.cpp is a format. With an end token, each document is followed by it (Megatron-LM's --append-eod): a text
// file is one document, a line of JSON is one, and an empty one is skipped. Cost: one pass over the file, with at most
// a line of it in memory, or with a tokenizer a whole document. Thread rule: one thread.
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

// How inputs become tokens. A preparation that is continued must use the same settings.
struct InputFormat {
  std::string from = "text";                         // a name of input_formats()
  std::optional<uint32_t> end_token = std::nullopt;  // after each document
  std::string json_key = "text";                     // key of the text in a line of JSON
  std::string tokenizer = {};                        // hash of the tokenizer; "": bytes, or unknown
  bool gives_bytes() const { return from == InputFormat{}.from && tokenizer.empty(); }
  bool operator==(const InputFormat&) const = default;
};

constexpr size_t kBlockTokens = 1 << 16;  // tokens that are read at once

class TokenInput {
 public:
  virtual ~TokenInput() = default;
  // RETURNS: the number of tokens read, fewer than requested only at the end. Throws kBadFile naming the file and the
  // place in it.
  virtual size_t read(std::span<uint32_t> out) = 0;
  // Has the same effect as reading this many tokens. REQUIRES: nothing was read yet, and they exist.
  virtual void skip(uint64_t tokens);
};

std::vector<std::string> input_formats();

// The file that holds an input's tokens. Users of Megatron-LM name two files by their prefix; for PREFIX this is
// PREFIX.bin.
std::string tokens_file(const std::string& path, const InputFormat& format);

// With "text", a file whose name ends in .jsonl or .json contains lines of JSON. `tokenizer`: for text; null means
// bytes. It must outlive the input; other formats already contain its tokens. Throws kInvalidArgument (an end token for
// such a format), kBadFile or kIo.
std::unique_ptr<TokenInput> open_token_input(const std::string& path, const InputFormat& format,
                                             Tokenizer* tokenizer = nullptr);
bool is_json_lines(const std::string& path);

struct ScannedInput {
  uint64_t tokens = 0;
  uint32_t largest = 0;
};

// Reads the whole input, so that errors in it are reported before anything is written.
ScannedInput scan_input(const std::string& path, const InputFormat& format, Tokenizer* tokenizer = nullptr);

}  // namespace ranklab
