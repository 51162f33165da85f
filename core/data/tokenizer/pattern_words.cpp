// From Oniguruma's words (doc/RE of kkos/oniguruma, Ruby's syntax with Unicode) into PCRE2's.
#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/tokenizer/pattern.h"

namespace ranklab {
namespace {

// PCRE2's \s also matches U+180E, which is no space since Unicode 6.3, and its \w neither marks nor the connectors.
constexpr std::string_view kSpace = R"(\x{9}-\x{D}\x{85}\p{Z})";
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        escape();
        continue;
      }
      if (in_class_ && c == '[' && !next_is("[:")) refuse("a class within a class");
      if (in_class_ && next_is("&&")) refuse("an intersection of classes");
      if (in_class_ && next_is("[:")) {
        copy(pattern_.find(":]", at_) == std::string_view::npos ? 1 : pattern_.find(":]", at_) + 2 - at_);
        continue;
      }
      if (c == '[') {
        begin_class();
        continue;
      }
      if (c == ']') in_class_ = false;
      copy(1);
    }
    return std::move(out_);
  }

 private:
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void copy(size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }
  // A bracket right after the beginning is a character.
  void begin_class() {
    in_class_ = true;
    copy(next_is("[^") ? 2 : 1);
    if (next_is("]")) copy(1);
  }
  void escape() {
    const char what = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    const auto put = [this](std::string_view set, bool negated) {
      if (in_class_)
        out_ += set;
      else
        out_ += std::string(negated ? "[^" : "[") + std::string(set) + "]";
      at_ += 2;
    };
    switch (what) {
      case 's':
        return put(kSpace, false);
      case 'S':
        return in_class_ ? put(R"(\S\x{180E})", false) : put(kSpace, true);
      case 'w':
        return put(kWord, false);
      case 'W':
        if (in_class_) refuse("\\W in a class");
        return put(kWord, true);
      case 'h':
      case 'H':
      case 'b':
      case 'B':
      case 'R':
      case 'X':
      case 'G':
      case 'K':
      case 'Q':
      case 'y':
      case 'Y':
      case 'O':
      case 'N':
      case 'g':
      case 'k':
      case 'Z':
        refuse(std::string("\\") + what);
      default:
        copy(2);
    }
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kInvalidArgument,
                {.where = where_,
                 .what = "a pattern of the tokenizer has what ranklab does not match",
                 .got = what + " in " + quote(without_controls(std::string(pattern_.substr(0, 80)))),
                 .want = "characters, classes, \\p{}, \\s, \\S, \\d, \\w, repetitions, groups and looks ahead",
                 .fix = "use another tokenizer"});
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
};

}  // namespace

std::string pcre2_pattern(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace ranklab
