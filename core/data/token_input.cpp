#include "core/data/token_input.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/data/inputs/inputs.h"
#include "core/data/packed_format.h"

namespace ranklab {
namespace {

struct FormatRow {
  const char* name;
  std::unique_ptr<TokenInput> (*open)(const std::string& path, const InputFormat& format);
  bool has_documents;                                             // whether ends of documents are known here
  std::string (*tokens_file)(const std::string& path) = nullptr;  // set if a name may stand for several files
};

constexpr std::array kFormats = {
    FormatRow{"text", inputs::open_text, true},
    FormatRow{"fineweb", inputs::open_fineweb, false},
    FormatRow{"nanogpt", inputs::open_nanogpt, false},
    FormatRow{"megatron", inputs::open_megatron, false, inputs::megatron_tokens_file},
};

const FormatRow& format_named(const std::string& name) {
  const auto row =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const FormatRow& one) { return name == one.name; });
  RANKLAB_CHECK(row != kFormats.end(), ErrorKind::kInvalidArgument, .where = "data",
                .what = "--from is not a known format", .got = quote(name), .want = join(input_formats(), " | "),
                .fix = "pass one of them");
  return *row;
}

}  // namespace

namespace inputs {

InputWords input_words() { return {.where = "data", .fix = "pass readable files"}; }

void refuse_input(const std::string& path, const std::string& place, std::string what, std::string got,
                  std::string want, std::string fix) {
  throw Error(ErrorKind::kBadFile, {.where = "data",
                                    .what = quote(path) + place + ": " + std::move(what),
                                    .got = std::move(got),
                                    .want = std::move(want),
                                    .fix = std::move(fix)});
}

void check_no_end(const std::string& path, const std::string& place, std::string_view bytes, uint64_t offset,
                  std::optional<uint32_t> end_token) {
  if (!end_token || *end_token > 255) return;
  const size_t at = bytes.find(static_cast<char>(*end_token));
  if (at == std::string_view::npos) return;
  refuse_input(path, place, "a document contains the token that ends documents",
               strprintf("%u at byte %lu", *end_token, offset + at), "that token only at the ends of documents",
               "pass --eod-token 256, which is not a byte, or remove the character");
}

}  // namespace inputs

void TokenInput::skip(uint64_t tokens) {
  std::vector<uint32_t> passed(std::min<uint64_t>(tokens, kBlockTokens));
  while (tokens > 0) {
    const size_t got = read(std::span(passed).first(std::min<uint64_t>(tokens, passed.size())));
    if (got == 0) return;
    tokens -= got;
  }
}

std::vector<std::string> input_formats() { return row_names(kFormats); }

bool is_json_lines(const std::string& path) { return path.ends_with(".jsonl") || path.ends_with(".json"); }

std::string tokens_file(const std::string& path, const InputFormat& format) {
  const FormatRow& row = format_named(format.from);
  return row.tokens_file == nullptr ? path : row.tokens_file(path);
}

std::unique_ptr<TokenInput> open_token_input(const std::string& path, const InputFormat& format, Tokenizer* tokenizer) {
  const FormatRow* const row = &format_named(format.from);
  RANKLAB_CHECK(row->has_documents || !format.end_token, ErrorKind::kInvalidArgument, .where = "--append-eod",
                .what = "token files already contain the ends of their documents",
                .got = std::string("--from ") + row->name, .want = "text",
                .fix = "leave it out, and name their token when training: train --eod-token N (GPT-2's is 50256)");
  if (row->has_documents) require_unpacked(path, "data prepare");
  if (tokenizer != nullptr && row->has_documents) return inputs::open_tokenized(path, format, *tokenizer);
  if (row->open == inputs::open_text && is_json_lines(path)) return inputs::open_json_lines(path, format);
  return row->open(path, format);
}

ScannedInput scan_input(const std::string& path, const InputFormat& format, Tokenizer* tokenizer) {
  const std::unique_ptr<TokenInput> input = open_token_input(path, format, tokenizer);
  std::vector<uint32_t> tokens(kBlockTokens);
  ScannedInput scanned;
  while (const size_t got = input->read(tokens)) {
    scanned.tokens += got;
    scanned.largest =
        std::max(scanned.largest, *std::max_element(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(got)));
  }
  return scanned;
}

}  // namespace ranklab
