#include "core/data/tokenizer/pre_tokenize.h"

namespace ranklab {

const std::string_view kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

using TakePart = std::function<void(TextSpan part, bool is_match)>;

// Visits the matches and the parts between them.
void each_part(const Pattern* pattern, const SplitStep& step, std::string_view text, const TakePart& take) {
  size_t done = 0;
  const auto take_match = [&](TextSpan match) {
    if (done < match.begin) take({done, match.begin}, step.invert);
    take(match, !step.invert);
    done = match.end;
  };
  if (pattern != nullptr) {
    pattern->find_all(text, take_match);
  } else if (!step.pattern.empty()) {
    for (size_t at = text.find(step.pattern); at != std::string_view::npos; at = text.find(step.pattern, done))
      take_match({at, at + step.pattern.size()});
  }
  if (done < text.size()) take({done, text.size()}, step.invert);
}

// Joins parts as the behavior says. A part is passed on once what follows cannot belong to it.
class Joiner {
 public:
  Joiner(SplitBehavior behavior, std::string_view text, const PreTokenizer::TakeWord& take)
      : behavior_(behavior), text_(text), take_(take) {}

  void add(TextSpan part, bool is_match) {
    if (behavior_ == SplitBehavior::kRemoved) {
      if (!is_match) give(part);
      return;
    }
    if (has_ && joins(is_match)) {
      held_.end = part.end;
    } else {
      flush();
      held_ = part;
      has_ = true;
    }
    held_is_match_ = is_match;
  }
  void flush() {
    if (has_) give(held_);
    has_ = false;
  }

 private:
  bool joins(bool is_match) const {
    switch (behavior_) {
      case SplitBehavior::kContiguous:
        return is_match == held_is_match_;
      case SplitBehavior::kMergedWithPrevious:
        return is_match && !held_is_match_;
      case SplitBehavior::kMergedWithNext:
        return !is_match && held_is_match_;
      default:
        return false;
    }
  }
  void give(TextSpan part) const {
    if (part.begin < part.end) take_(text_.substr(part.begin, part.end - part.begin));
  }
  SplitBehavior behavior_;
  std::string_view text_;
  const PreTokenizer::TakeWord& take_;
  TextSpan held_;
  bool has_ = false, held_is_match_ = false;
};

}  // namespace

PreTokenizer::PreTokenizer(const PreTokenizerSpec& spec, const std::string& where)
    : add_prefix_space_(spec.add_prefix_space) {
  for (const SplitStep& step : spec.splits)
    steps_.push_back({step, step.is_regex ? std::make_unique<Pattern>(step.pattern, where) : nullptr});
  if (spec.gpt2_pattern) gpt2_ = std::make_unique<Pattern>(std::string(kGpt2Pattern), where);
}

void PreTokenizer::split(std::string_view text, const TakeWord& take) const { run(0, text, take); }

void PreTokenizer::run(size_t step, std::string_view text, const TakeWord& take) const {
  if (step == steps_.size()) {
    finish(text, take);
    return;
  }
  const TakeWord next = [&](std::string_view part) { run(step + 1, part, take); };
  Joiner joiner(steps_[step].spec.behavior, text, next);
  each_part(steps_[step].pattern.get(), steps_[step].spec, text,
            [&](TextSpan part, bool is_match) { joiner.add(part, is_match); });
  joiner.flush();
}

void PreTokenizer::finish(std::string_view text, const TakeWord& take) const {
  std::string prefixed;
  if (add_prefix_space_ && !text.empty() && text[0] != ' ') {
    prefixed = " " + std::string(text);
    text = prefixed;
  }
  if (!gpt2_) {
    if (!text.empty()) take(text);
    return;
  }
  each_part(gpt2_.get(), {}, text, [&](TextSpan part, bool) {
    if (part.begin < part.end) take(text.substr(part.begin, part.end - part.begin));
  });
}

}  // namespace ranklab
