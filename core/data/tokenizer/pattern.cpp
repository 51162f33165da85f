#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/data/tokenizer/pattern.h"

#include <pcre2.h>

#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr uint32_t kMostSteps = 50'000'000;
constexpr uint32_t kMostHeapKib = 256 << 10;
constexpr size_t kLeastStack = 32 << 10, kMostStack = 64 << 20;  // stack size for the compiled pattern
constexpr size_t kMostPatternBytes = 64 << 10;

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> text = {};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

std::string shown(const std::string& pattern) {
  constexpr size_t kShown = 80;
  return quote(without_controls(pattern.size() > kShown ? pattern.substr(0, kShown) + "..." : pattern));
}

size_t next_character(std::string_view text, size_t at) {
  do ++at;
  while (at < text.size() && (text[at] & 0xC0) == 0x80);
  return at;
}

}  // namespace

struct Pattern::Compiled {
  template <auto kFree>
  struct Freed {
    template <typename T>
    void operator()(T* object) const {
      kFree(object);
    }
  };
  std::unique_ptr<pcre2_code, Freed<pcre2_code_free>> code;
  std::unique_ptr<pcre2_match_data, Freed<pcre2_match_data_free>> match;
  std::unique_ptr<pcre2_jit_stack, Freed<pcre2_jit_stack_free>> stack;
  std::unique_ptr<pcre2_match_context, Freed<pcre2_match_context_free>> context;
};

Pattern::Pattern(const std::string& pattern, std::string where)
    : pattern_(pattern), where_(std::move(where)), compiled_(std::make_unique<Compiled>()) {
  const std::string translated = pcre2_pattern(pattern, where_);
  RANKLAB_CHECK(translated.size() <= kMostPatternBytes, ErrorKind::kInvalidArgument, .where = where_,
                .what = "a pattern is too long", .got = std::to_string(translated.size()) + " bytes",
                .want = "at most " + std::to_string(kMostPatternBytes), .fix = "use another tokenizer");
  int error = 0;
  size_t offset = 0;
  // ^ and $ match at the beginning and end of every line, as in Oniguruma.
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  // Single bytes cannot be matched (\C), so matches are always UTF-8; the text is checked once and not for every match.
  compiled_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), kOptions,
                                      &error, &offset, nullptr));
  RANKLAB_CHECK(compiled_->code, ErrorKind::kInvalidArgument, .where = where_,
                .what = "the pattern " + shown(pattern_) + " is invalid",
                .got = error_text(error) + " at byte " + std::to_string(offset), .want = "a regular expression",
                .fix = "use another tokenizer");
  pcre2_jit_compile(compiled_->code.get(), PCRE2_JIT_COMPLETE);  // without a JIT, the interpreter is used
  compiled_->match.reset(pcre2_match_data_create(1, nullptr));
  compiled_->context.reset(pcre2_match_context_create(nullptr));
  compiled_->stack.reset(pcre2_jit_stack_create(kLeastStack, kMostStack, nullptr));
  RANKLAB_CHECK(compiled_->match && compiled_->context, ErrorKind::kEnvironment, .where = where_,
                .what = "not enough memory for a pattern", .fix = "free memory");
  pcre2_set_match_limit(compiled_->context.get(), kMostSteps);
  pcre2_set_heap_limit(compiled_->context.get(), kMostHeapKib);
  if (compiled_->stack) pcre2_jit_stack_assign(compiled_->context.get(), nullptr, compiled_->stack.get());
}

Pattern::~Pattern() = default;

std::optional<TextSpan> Pattern::find(std::string_view text, size_t from) const {
  const auto match = [&](uint32_t options) {
    return pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK | options, compiled_->match.get(), compiled_->context.get());
  };
  int found = match(0);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
  if (found == PCRE2_ERROR_NOMATCH) return {};
  if (found < 0) refuse_match(found);
  const size_t* const place = pcre2_get_ovector_pointer(compiled_->match.get());
  // \K can move the beginning of a match
  if (place[0] < from || place[1] < place[0]) refuse_match(PCRE2_ERROR_INTERNAL);
  return TextSpan{place[0], place[1]};
}

void Pattern::refuse_match(int error) const {
  const bool steps = error == PCRE2_ERROR_MATCHLIMIT || error == PCRE2_ERROR_HEAPLIMIT;
  throw Error(ErrorKind::kInvalidArgument,
              {.where = where_,
               .what = "the pattern " + shown(pattern_) + " cannot be matched on this text",
               .got = steps ? "more steps or memory than a sensible pattern takes" : error_text(error),
               .want = "at most " + std::to_string(kMostSteps / 1'000'000) + " million steps a word",
               .fix = "use a tokenizer whose patterns backtrack less, or shorter lines"});
}

void Pattern::find_all(std::string_view text, const std::function<void(TextSpan)>& take) const {
  std::optional<size_t> last_end;
  for (size_t from = 0; from <= text.size();) {
    const std::optional<TextSpan> match = find(text, from);
    if (!match) return;
    if (match->begin == match->end && last_end == match->end) {
      from = next_character(text, from);
      continue;
    }
    take(*match);
    last_end = from = match->end;
  }
}

}  // namespace ranklab
