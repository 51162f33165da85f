#include "core/precision/module_fold.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace ranklab {
namespace {

using Numbers = std::vector<int64_t>;

// One line of a group: the text of each number, and how many modules it covers.
struct Line {
  std::vector<std::string> texts = {};
  int64_t count = 1;
  bool operator==(const Line&) const = default;
};

Numbers numbers_of(const std::string& module) {
  Numbers numbers;
  for (size_t begin = 0; begin <= module.size();) {
    const size_t end = std::min(module.find('.', begin), module.size());
    int64_t value = 0;
    const auto [last, error] = std::from_chars(module.data() + begin, module.data() + end, value);
    if (error == std::errc{} && last == module.data() + end) numbers.push_back(value);
    begin = end + 1;
  }
  return numbers;
}

// Numbers at `place` share a line if what follows them is the same. REQUIRES: all of one length, ascending, unique.
std::vector<Line> fold(std::span<const Numbers> all, size_t place) {
  if (all.empty() || place == all[0].size()) return {Line{}};
  std::vector<std::pair<Numbers, std::vector<Line>>> groups;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin;
    while (end < all.size() && all[end][place] == all[begin][place]) ++end;
    std::vector<Line> rest = fold(all.subspan(begin, end - begin), place + 1);
    const auto same = std::ranges::find_if(groups, [&](const auto& group) { return group.second == rest; });
    if (same != groups.end()) {
      same->first.push_back(all[begin][place]);
    } else {
      groups.push_back({{all[begin][place]}, std::move(rest)});
    }
    begin = end;
  }
  std::vector<Line> lines;
  for (const auto& [firsts, rest] : groups) {
    for (const Line& line : rest) {
      Line whole{{ranges_text(firsts)}, line.count * static_cast<int64_t>(firsts.size())};
      whole.texts.insert(whole.texts.end(), line.texts.begin(), line.texts.end());
      lines.push_back(std::move(whole));
    }
  }
  return lines;
}

std::string with_texts(const std::string& pattern, const std::vector<std::string>& texts) {
  std::string name;
  size_t next = 0;
  for (const char c : pattern) {
    if (c == '*' && next < texts.size()) {
      name += texts[next++];
    } else {
      name += c;
    }
  }
  return name;
}

struct Alike {
  std::string pattern;
  const ModulePrecision* first;
  std::vector<Numbers> numbers;
};

bool agree(const ModulePrecision& a, const ModulePrecision& b) {
  return a.linear == b.linear && a.compute == b.compute && a.rule == b.rule;
}

}  // namespace

std::string ranges_text(std::span<const int64_t> numbers) {
  std::string text;
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[begin]);
    if (end - begin > 1) text += "-" + std::to_string(numbers[end - 1]);
    begin = end;
  }
  return text;
}

std::vector<ModuleGroup> fold_modules(std::span<const ModulePrecision> modules) {
  std::vector<Alike> groups;
  std::map<std::string, std::vector<size_t>> of_pattern;
  for (const ModulePrecision& module : modules) {
    const std::string pattern = without_numbers(module.module);
    std::vector<size_t>& candidates = of_pattern[pattern];
    const auto same =
        std::ranges::find_if(candidates, [&](size_t group) { return agree(*groups[group].first, module); });
    if (same == candidates.end()) {
      candidates.push_back(groups.size());
      groups.push_back({pattern, &module, {numbers_of(module.module)}});
    } else {
      groups[*same].numbers.push_back(numbers_of(module.module));
    }
  }
  std::vector<ModuleGroup> out;
  for (Alike& group : groups) {
    std::ranges::sort(group.numbers);
    for (const Line& line : fold(group.numbers, 0))
      out.push_back({with_texts(group.pattern, line.texts), group.first, line.count});
  }
  return out;
}

}  // namespace ranklab
