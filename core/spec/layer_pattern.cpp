#include "core/spec/layer_pattern.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ranklab {
namespace {

using Pattern = std::vector<bool>;

// sum = product { "+" product };  product = atom { "*" number };  atom = "[" 0 or 1 { "," 0 or 1 } "]" | "(" sum ")"
class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : text_(text) {}

  std::optional<Pattern> read() {
    std::optional<Pattern> pattern = sum(0);
    return at_ == text_.size() ? pattern : std::nullopt;
  }

 private:
  bool take(char wanted) {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  std::optional<int64_t> number() {
    int64_t value = 0;
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    const auto [behind, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    at_ += static_cast<size_t>(behind - begin);
    return value;
  }

  std::optional<Pattern> sum(int depth) {
    std::optional<Pattern> total = product(depth);
    while (total && take('+')) {
      const std::optional<Pattern> more = product(depth);
      if (!more || total->size() + more->size() > kMostLayers) return std::nullopt;
      total->insert(total->end(), more->begin(), more->end());
    }
    return total;
  }

  std::optional<Pattern> product(int depth) {
    std::optional<Pattern> part = atom(depth);
    while (part && take('*')) {
      const std::optional<int64_t> times = number();
      if (!times || *times < 1 || *times > kMostLayers / static_cast<int64_t>(part->size())) return std::nullopt;
      const Pattern once = *part;
      for (int64_t i = 1; i < *times; ++i) part->insert(part->end(), once.begin(), once.end());
    }
    return part;
  }

  std::optional<Pattern> atom(int depth) {
    constexpr int kDeepest = 8;
    if (take('(')) {
      std::optional<Pattern> inner = depth < kDeepest ? sum(depth + 1) : std::nullopt;
      return take(')') ? inner : std::nullopt;
    }
    if (!take('[')) return std::nullopt;
    Pattern layers;
    do {
      const std::optional<int64_t> has = number();
      if (!has || *has > 1 || layers.size() == kMostLayers) return std::nullopt;
      layers.push_back(*has == 1);
    } while (take(','));
    return take(']') ? std::optional(layers) : std::nullopt;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

bool LayerPattern::has(int64_t layer) const {
  if (!pattern.empty()) return pattern[static_cast<size_t>(layer) % pattern.size()];
  return skip_freq == 0 || (layer + 1) % skip_freq != 0;
}

std::string layer_pattern_text(const LayerPattern& layers, PatternOne one) {
  const Pattern& pattern = layers.pattern;
  if (pattern.empty()) return std::to_string(layers.skip_freq);
  std::string text;
  for (size_t i = 0, end = 0; i < pattern.size(); i = end) {
    while (end < pattern.size() && pattern[end] == pattern[i]) ++end;
    text += text.empty() ? "" : "+";
    text += pattern[i] == (one == PatternOne::kHas) ? "[1]" : "[0]";
    if (end - i > 1) text += "*" + std::to_string(end - i);
  }
  return text;
}

std::optional<LayerPattern> parse_layer_pattern(const std::string& text, PatternOne one) {
  std::string dense = text;
  std::erase(dense, ' ');
  int64_t freq = 0;
  const char* end = dense.data() + dense.size();
  const auto [behind, error] = std::from_chars(dense.data(), end, freq);
  if (error == std::errc{} && behind == end)
    return freq >= 0 && freq <= kMostLayers ? std::optional(LayerPattern{.skip_freq = freq}) : std::nullopt;
  std::optional<Pattern> pattern = PatternReader(dense).read();
  if (!pattern) return std::nullopt;
  if (one == PatternOne::kLacks) pattern->flip();
  const bool all = std::ranges::find(*pattern, false) == pattern->end();
  return all ? LayerPattern{} : LayerPattern{.pattern = *pattern};
}

LayerPattern layer_pattern_of(const std::vector<bool>& layers) {
  const auto first_whole = std::ranges::find(layers, false);
  if (first_whole == layers.end()) return {};
  const LayerPattern regular{.skip_freq = first_whole - layers.begin() + 1};
  for (size_t i = 0; i < layers.size(); ++i) {
    if (regular.has(static_cast<int64_t>(i)) != layers[i]) return {.pattern = layers};
  }
  return regular;
}

}  // namespace ranklab
