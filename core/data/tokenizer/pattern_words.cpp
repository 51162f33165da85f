// Translates Oniguruma's syntax (doc/RE of kkos/oniguruma, Ruby's syntax with Unicode) to PCRE2's.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/tokenizer/pattern.h"

namespace ranklab {
namespace {

// PCRE2's \s also matches U+180E, which is not a space since Unicode 6.3, and its \w lacks marks and connectors.
constexpr std::string_view kSpace = R"(\x{9}-\x{D}\x{85}\p{Z})";
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Outside of classes, Oniguruma's \w also includes the superscript digits and fractions of Latin-1.
constexpr std::string_view kWordOutside = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

struct NamedSet {
  std::string_view name, set, others;  // `others`: the complement; "": no short list describes it
};
// [:NAME:] of Oniguruma; [:graph:] and [:print:] have no short list.
constexpr std::array kSets = {NamedSet{"alnum", R"(\p{Alphabetic}\p{Nd})", ""},
                              NamedSet{"alpha", R"(\p{Alphabetic})", R"(\P{Alphabetic})"},
                              NamedSet{"ascii", R"(\x{0}-\x{7F})", R"(\x{80}-\x{10FFFF})"},
                              NamedSet{"blank", R"(\x{9}\p{Zs})", ""},
                              NamedSet{"cntrl", R"(\p{Cc})", R"(\P{Cc})"},
                              NamedSet{"digit", R"(\p{Nd})", R"(\P{Nd})"},
                              NamedSet{"lower", R"(\p{Lowercase})", R"(\P{Lowercase})"},
                              NamedSet{"punct", R"(\p{P}\p{S})", ""},
                              NamedSet{"space", kSpace, R"(\S\x{180E})"},
                              NamedSet{"upper", R"(\p{Uppercase})", R"(\P{Uppercase})"},
                              NamedSet{"word", kWord, ""},
                              NamedSet{"xdigit", "0-9A-Fa-f", ""}};

// Whether PCRE2 knows a script of that name.
bool is_script(std::string_view name) {
  const std::string pattern = "\\p{sc:" + std::string(name) + "}";
  int error = 0;
  size_t offset = 0;
  const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &error, &offset, nullptr),
      pcre2_code_free);
  return code != nullptr;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\') {
        escape();
      } else if (in_class_) {
        class_member();
      } else {
        part();
      }
    }
    out_.append(to_close_.back(), ')');
    return std::move(out_);
  }

 private:
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  void copy(size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }
  void put(std::string_view text, size_t bytes) {
    out_ += text;
    at_ += bytes;
  }
  void part() {
    switch (pattern_[at_]) {
      case '[':
        in_class_ = true;  // a bracket right after the beginning is an ordinary character
        copy(next_is("[^") ? 2 : 1);
        if (next_is("]")) copy(1);
        return;
      case '(':
        return begin_group();
      case ')':
        out_.append(to_close_.back(), ')');
        if (to_close_.size() > 1) to_close_.pop_back();
        return copy(1);
      case '{':
        return interval();
      default:
        copy(1);
    }
  }
  void class_member() {
    if (next_is("&&")) refuse("an intersection of classes");
    if (next_is("[:")) return named_set();
    if (next_is("[")) refuse("a class within a class");
    in_class_ = !next_is("]");
    copy(1);
  }
  void named_set() {
    const size_t end = pattern_.find(":]", at_ + 2);
    if (end == std::string_view::npos) refuse("a class within a class");
    std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    const bool negated = name.starts_with("^");
    if (negated) name.remove_prefix(1);
    const auto* const found = std::ranges::find(kSets, name, &NamedSet::name);
    const std::string_view set = found == kSets.end() ? "" : negated ? found->others : found->set;
    if (set.empty()) refuse(std::string(pattern_.substr(at_, end + 2 - at_)));
    put(set, end + 2 - at_);
  }
  void begin_group() {
    if (next_is("(?#")) return put("", std::min(pattern_.find(')', at_), pattern_.size() - 1) + 1 - at_);
    if (next_is("(*")) refuse("(*");
    for (const std::string_view begin : {"(?:", "(?=", "(?!", "(?>", "(?<"}) {
      if (next_is(begin)) return open_group(begin.size());
    }
    return next_is("(?") ? options() : open_group(1);
  }
  void open_group(size_t bytes) {
    to_close_.push_back(0);
    copy(bytes);
  }
  // Oniguruma's m is PCRE2's s. Options that do not open a group extend to the end of the enclosing group, including
  // its alternatives.
  void options() {
    const size_t end = pattern_.find_first_not_of("im-", at_ + 2);
    const char after = end == std::string_view::npos ? '\0' : pattern_[end];
    if (after != ':' && after != ')') refuse(std::string(pattern_.substr(at_, 3)));
    std::string begin(pattern_.substr(at_, end - at_));
    std::ranges::replace(begin, 'm', 's');
    if (after == ')') ++to_close_.back();
    if (after == ':') to_close_.push_back(0);
    put(begin + ":", end + 1 - at_);
  }
  // {,n} begins at 0; braces that are not an interval are literal. A + after an interval repeats it in Oniguruma but
  // makes it possessive in PCRE2, and {n}? means n times or not at all.
  void interval() {
    const auto digits = [this](size_t from) {
      size_t end = from;
      while (end < pattern_.size() && is_digit(pattern_[end])) ++end;
      return end;
    };
    const size_t low = digits(at_ + 1);
    const bool comma = low < pattern_.size() && pattern_[low] == ',';
    const size_t high = comma ? digits(low + 1) : low;
    const bool empty = low == at_ + 1 && (!comma || high == low + 1);
    if (empty || high >= pattern_.size() || pattern_[high] != '}') return put("\\{", 1);
    if (low == at_ + 1) {
      out_ += "{0";
      at_ = low;
    }
    copy(high + 1 - at_);
    if (next_is("+")) refuse("a + after {n,m}");
    if (!comma && next_is("?")) refuse("a ? after {n}");
  }
  void property() {
    const size_t begin = at_ + 3, end = pattern_.find('}', at_);
    if (pattern_.substr(at_ + 2, 1) != "{" || end == std::string_view::npos)
      refuse(std::string(pattern_.substr(at_, 2)) + " without {}");
    std::string_view name = pattern_.substr(begin, end - begin);
    const bool negated = name.starts_with("^");
    if (negated) name.remove_prefix(1);
    if (!is_script(name)) return copy(end + 1 - at_);
    // Without sc:, PCRE2 would also include characters that are used together with the script.
    put(std::string(pattern_.substr(at_, 3)) + (negated ? "^" : "") + "sc:" + std::string(name) + "}", end + 1 - at_);
  }
  // \x{H...}
  void number() {
    const size_t end = pattern_.find('}', at_);
    const bool braced = pattern_.substr(at_ + 2, 1) == "{" && end != std::string_view::npos;
    copy(braced ? end + 1 - at_ : 2);
  }
  void escape() {
    const char what = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    const auto put_set = [this](std::string_view set, bool negated) {
      put(in_class_ ? std::string(set) : std::string(negated ? "[^" : "[") + std::string(set) + "]", 2);
    };
    switch (what) {
      case 's':
        return put_set(kSpace, false);
      case 'S':
        return in_class_ ? put_set(R"(\S\x{180E})", false) : put_set(kSpace, true);
      case 'w':
        return put_set(in_class_ ? kWord : kWordOutside, false);
      case 'W':
        if (in_class_) refuse("\\W in a class");
        return put_set(kWordOutside, true);
      case 'p':
      case 'P':
        return property();
      case 'x':
      case 'o':
        return number();
      default:
        if (what != '\0' && std::string_view("hHbBRXGKQyYONgkZuE").find(what) != std::string_view::npos)
          refuse(std::string("\\") + what);
        copy(2);
    }
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kInvalidArgument,
                {.where = where_,
                 .what = "a pattern of the tokenizer uses syntax that ranklab does not support",
                 .got = what + " in " + quote(without_controls(std::string(pattern_.substr(0, 80)))),
                 .want = "characters, classes, \\p{}, \\s, \\S, \\d, \\w, repetitions, groups and lookaheads",
                 .fix = "use another tokenizer"});
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
  // for the pattern and each open group: the number of groups that options opened in it
  std::vector<size_t> to_close_ = {0};
};

}  // namespace

std::string pcre2_pattern(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace ranklab
