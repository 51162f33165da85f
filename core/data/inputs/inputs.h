// What the formats of core/data/inputs share; each file of the folder defines one of these functions.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/data/token_input.h"

namespace ranklab::inputs {

inline constexpr size_t kBlockBytes = 1 << 20;  // bytes of a file that are read at once

std::unique_ptr<TokenInput> open_text(const std::string& path, const InputFormat& format);
std::unique_ptr<TokenInput> open_json_lines(const std::string& path, const InputFormat& format);
std::unique_ptr<TokenInput> open_tokenized(const std::string& path, const InputFormat& format, Tokenizer& tokenizer);
std::unique_ptr<TokenInput> open_fineweb(const std::string& path, const InputFormat& format);
std::unique_ptr<TokenInput> open_nanogpt(const std::string& path, const InputFormat& format);
std::unique_ptr<TokenInput> open_megatron(const std::string& path, const InputFormat& format);

std::string megatron_tokens_file(const std::string& path);

InputWords input_words();

// `place`: "", or the place in the file, such as ", line 3". Throws kBadFile.
[[noreturn]] void refuse_input(const std::string& path, const std::string& place, std::string what, std::string got,
                               std::string want, std::string fix);

// Checks that the token which ends documents does not occur inside a document, where it would end it. Throws kBadFile.
// `offset`: of the first of `bytes`, in the file or document that `place` names.
void check_no_end(const std::string& path, const std::string& place, std::string_view bytes, uint64_t offset,
                  std::optional<uint32_t> end_token);

}  // namespace ranklab::inputs
