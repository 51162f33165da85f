#include "core/pipeline/stage_layout.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr size_t kLongest = 1 << 18;  // maximum number of characters of an expanded pattern

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                         const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "config", .what = "--pipeline-layout " + what, .got = got, .want = want, .fix = fix});
}

[[noreturn]] void refuse_pattern(const std::string& text, const std::string& what) {
  refuse(what, quote(text), "E first, then t for each layer, m for each MTP module, L last, and | between stages",
         "write it as in Et*3|(tt|)*29m|L");
}

// Parses "*12" at `at`, moves `at` behind it, and returns 12; returns 1 if there is none.
size_t times(std::string_view text, size_t& at, const std::string& whole) {
  if (at >= text.size() || text[at] != '*') return 1;
  size_t count = 0;
  const char* begin = text.data() + at + 1;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), count);
  if (error != std::errc{} || count > kLongest) refuse_pattern(whole, "has a * without a number of repetitions");
  at = static_cast<size_t>(end - text.data());
  return count;
}

void append(std::string& out, std::string_view part, size_t count, const std::string& whole) {
  if (part.size() * count + out.size() > kLongest) refuse_pattern(whole, "is too long when it is written out");
  while (count-- > 0) out += part;
}

// Expands x*n, or, with `groups`, (...)*n.
std::string written_out(const std::string& text, bool groups, const std::string& whole) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    std::string_view part = std::string_view(text).substr(at, 1);
    if (groups && part == "(") {
      const size_t end = text.find(')', at);
      if (end == std::string::npos || text.find('(', at + 1) < end)
        refuse_pattern(whole, "has a parenthesis that is not closed before another");
      part = std::string_view(text).substr(at + 1, end - at - 1);
      at = end + 1;
    } else {
      ++at;
      if (groups) {
        out += part;
        continue;
      }
    }
    append(out, part, times(text, at, whole), whole);
  }
  return out;
}

class PatternReader {
 public:
  explicit PatternReader(const std::string& text) : text_(text) {}

  StageLayout read() {
    std::string dense = text_;
    std::erase(dense, ',');
    dense = written_out(written_out(dense, true, text_), false, text_);
    if (!dense.starts_with('E') || !dense.ends_with('L')) refuse_pattern(text_, "does not begin with E and end with L");
    for (const char letter : dense) take(letter);
    if (embeddings_ != 1 || heads_ != 1) refuse_pattern(text_, "has more than one E or L");
    if (out_.mtp_stage == stage()) out_.mtp_stage = -1;
    return std::move(out_);
  }

 private:
  int stage() const { return static_cast<int>(out_.layers.size()) - 1; }

  void take(char letter) {
    switch (letter) {
      case 'E':
        ++embeddings_;
        return;
      case 't':
        if (*out_.mtp_layers > 0) refuse_pattern(text_, "has a layer after m");
        ++out_.layers.back();
        return;
      case 'm':
        if (++*out_.mtp_layers > 1 && out_.mtp_stage != stage())
          refuse_pattern(text_, "has modules m in more than one stage");
        out_.mtp_stage = stage();
        return;
      case 'L':
        ++heads_;
        return;
      case '|':
        out_.layers.push_back(0);
        return;
      default:
        refuse_pattern(text_, "has a letter that it does not know, " + quote(std::string(1, letter)));
    }
  }

  const std::string& text_;
  StageLayout out_ = {.layers = {0}, .mtp_layers = 0, .mtp_stage = -1};
  int embeddings_ = 0, heads_ = 0;
};

StageLayout parse_numbers(const std::string& text) {
  StageLayout out;
  if (text.empty()) return out;
  for (const std::string& word : split(text, ',')) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value < 0)
      refuse("cannot take this value", quote(text),
             "the layers of each stage, as in 2,2,3,1, or a pattern, as in Ett|(tt|)*2L",
             "leave it out for an even split");
    out.layers.push_back(value);
  }
  return out;
}

}  // namespace

bool is_stage_pattern(const std::string& text) { return text.find_first_of("EtmL|(") != std::string::npos; }

StageLayout parse_stage_layout(const std::string& text) {
  return is_stage_pattern(text) ? PatternReader(text).read() : parse_numbers(text);
}

}  // namespace ranklab
