#include "core/data/tokenizer/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace ranklab {
namespace {

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |= form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

std::string normalized(std::string_view text, NormalForm form) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &mapped, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  RANKLAB_CHECK(size >= 0, ErrorKind::kEnvironment, .where = "tokenizer", .what = "a text cannot be normalized",
                .got = utf8proc_errmsg(size), .fix = "use shorter documents");
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(size)};
}

bool is_space(utf8proc_int32_t point) {
  if (point <= 0x85) return point == ' ' || (point >= 0x9 && point <= 0xD) || point == 0x85;
  const utf8proc_category_t category = utf8proc_category(point);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

}  // namespace

void require_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text.substr(at));
    RANKLAB_CHECK(
        length > 0, ErrorKind::kInvalidArgument, .where = "tokenizer", .what = "the text is not UTF-8",
        .got = strprintf("byte 0x%02X at %zu", static_cast<unsigned>(static_cast<unsigned char>(text[at])), at),
        .want = "UTF-8", .fix = "convert it, for example with iconv -f LATIN1 -t UTF-8");
    at += length;
  }
}

std::string normalized(std::string_view text, std::span<const NormalForm> forms) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
  std::string result(text);
  if (ascii) return result;
  for (const NormalForm form : forms) result = normalized(result, form);
  return result;
}

size_t leading_space(std::string_view text) {
  utf8proc_int32_t point = 0;
  const utf8proc_ssize_t bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                  static_cast<utf8proc_ssize_t>(text.size()), &point);
  return bytes > 0 && is_space(point) ? static_cast<size_t>(bytes) : 0;
}

size_t trailing_space(std::string_view text) {
  if (text.empty()) return 0;
  size_t begin = text.size() - 1;
  while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
  return leading_space(text.substr(begin));
}

}  // namespace ranklab
