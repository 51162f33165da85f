// A pattern of a tokenizer, as understood by Hugging Face's tokenizers (Oniguruma), matched by PCRE2 with UTF and
// Unicode properties. Where the two read the same spelling differently, the pattern is translated: \s without U+180E,
// \w with marks, \p{Han} without characters that are only used together with Han, [:alpha:], ^ and $ at every line,
// (?m) for a dot that matches line ends, {,n}. What cannot be translated is refused. The two may use different versions
// of Unicode. Cost: a pattern is compiled to machine code once; a match that takes more than 50 million steps is
// refused, so a catastrophic pattern costs a second. Thread rule: one thread at a time.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ranklab {

struct TextSpan {
  size_t begin = 0, end = 0;
};

class Pattern {
 public:
  // Throws kInvalidArgument saying why it is not a valid pattern; `where` names the file.
  Pattern(const std::string& pattern, std::string where);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // The first match that begins at or after `from`. Throws kInvalidArgument when it takes too many steps. REQUIRES:
  // text is UTF-8, and a character begins at `from`.
  std::optional<TextSpan> find(std::string_view text, size_t from) const;
  // All matches, without overlaps. An empty match at the end of the previous one is skipped.
  void find_all(std::string_view text, const std::function<void(TextSpan)>& take) const;

 private:
  struct Compiled;
  [[noreturn]] void refuse_match(int error) const;
  std::string pattern_, where_;
  std::unique_ptr<Compiled> compiled_;
};

// The pattern in PCRE2's syntax. Throws kInvalidArgument.
std::string pcre2_pattern(std::string_view pattern, const std::string& where);

}  // namespace ranklab
