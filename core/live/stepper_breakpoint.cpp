#include "core/live/stepper_breakpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/live/stepper_state.h"

namespace ranklab {
namespace {

constexpr std::array<const char*, 5> kSpans = {"F", "B", "W", "BW", "optimizer"};
constexpr std::array<const char*, 5> kCounters = {"loss", "grad_norm", "activations_held", "wait", "memory"};
constexpr std::array<const char*, 5> kPlaces = {"axis", "rank", "step", "mb", "stage"};

struct Unit {
  const char* name;
  double factor;
};
constexpr std::array<Unit, 4> kTimes = {{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
constexpr std::array<Unit, 7> kBytes = {
    {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}};

[[noreturn]] void refuse(const std::string& what, std::string_view got, const std::string& want,
                         std::span<const std::string> known = {}) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "breakpoint",
               .what = what,
               .got = quote(std::string(got.substr(0, 80)) + (got.size() > 80 ? "..." : "")),
               .want = want,
               .fix = did_you_mean(got, known, "see: help break")});
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = text.find_first_not_of(" \t", at);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    at = end;
  }
  return words;
}

bool is_time(std::string_view counter) { return counter == "wait"; }
double number_of(std::string_view text, std::string_view counter) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const std::string want = is_time(counter)             ? "a number of ns, us, ms or s (2ms)"
                           : is_memory_counter(counter) ? "a number of B, KiB, MiB, GiB, KB, MB or GB (100MiB)"
                                                        : "a number";
  if (error != std::errc() || !std::isfinite(value)) refuse("the limit is not a number", text, want);
  if (unit.empty() && !is_time(counter)) return value;
  if (is_time(counter)) {
    for (const Unit& known : kTimes)
      if (unit == known.name) return value * known.factor;
  } else if (is_memory_counter(counter)) {
    for (const Unit& known : kBytes)
      if (unit == known.name) return value * known.factor;
  }
  refuse("the limit has an unknown unit", text, want);
}

int count_of(const std::string& key, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    refuse(key + " needs a number", text, "0 or more");
  return value;
}

Axis axis_of(std::string_view text) {
  std::vector<std::string> known;
  for (int i = 0; i < static_cast<int>(Axis::kCount); ++i) {
    known.emplace_back(name(static_cast<Axis>(i)));
    if (text == known.back()) return static_cast<Axis>(i);
  }
  refuse("no such axis", text, join(std::span<const std::string>(known), ", "), known);
}

void set_place(Breakpoint& out, const std::string& key, std::string_view value) {
  const auto once = [&](bool given) {
    if (given) refuse(key + " is given twice", value, "one " + key + ", and another breakpoint for another");
  };
  const auto number = [&](int& part) {
    once(part >= 0);
    part = count_of(key, value);
  };
  if (key == "axis") {
    once(out.axis.has_value());
    out.axis = axis_of(value);
  } else if (key == "rank") {
    number(out.rank);
  } else if (key == "step") {
    number(out.step);
  } else if (key == "mb" || key == "microbatch") {
    number(out.microbatch);
  } else if (key == "stage") {
    number(out.stage);
  } else {
    const std::vector<std::string> known(kPlaces.begin(), kPlaces.end());
    refuse("no such part", key, "axis, rank, step, mb or stage", known);
  }
}

// Accepts the counters that the runtime records; a program with counters of its own fills in a Breakpoint directly.
void check_counter(const std::string& counter) {
  std::vector<std::string> known(kCounters.begin(), kCounters.end());
  for (int i = 0; i < static_cast<int>(MemoryCategory::kCount); ++i)
    known.push_back("memory/" + std::string(name(static_cast<MemoryCategory>(i))));
  if (std::find(known.begin(), known.end(), counter) != known.end()) return;
  refuse("no such counter", counter, join(std::span<const std::string>(known), ", "), known);
}

// Parses "COUNTER is nan", "COUNTER > VALUE" from words[at...]; returns the number of words consumed.
size_t take_condition(Breakpoint& out, const std::vector<std::string>& words, size_t at) {
  const std::string& sign = words[at + 1];
  if (out.has_condition()) refuse("two conditions", words[at], "one");
  if (at + 2 >= words.size()) refuse("the condition has no limit", words[at] + " " + sign, "loss > 6, wait > 2ms");
  out.counter = words[at];
  check_counter(out.counter);
  if (sign == "is") {
    if (words[at + 2] != "nan" && words[at + 2] != "NaN") refuse("a counter can be nan", words[at + 2], "loss is nan");
    out.comparison = Comparison::kNan;
  } else {
    out.comparison = sign == ">" ? Comparison::kOver : Comparison::kUnder;
    out.value = number_of(words[at + 2], out.counter);
  }
  return 3;
}

void set_event(Breakpoint& out, const std::string& word) {
  if (!out.action.empty() || out.verb) refuse("two events", word, "one");
  std::vector<std::string> known(kSpans.begin(), kSpans.end());
  if (std::find(known.begin(), known.end(), word) != known.end()) {
    out.action = word;
    return;
  }
  for (int i = 0; i < static_cast<int>(Verb::kCount); ++i) {
    const std::string_view verb = name(static_cast<Verb>(i));
    if (word == verb) {
      out.verb = static_cast<Verb>(i);
      return;
    }
    known.emplace_back(verb);
  }
  if (std::find(kCounters.begin(), kCounters.end(), word) != kCounters.end())
    refuse("a counter alone", word, "a condition: " + word + " > a limit, < a limit, or is nan");
  known.insert(known.end(), kCounters.begin(), kCounters.end());
  refuse("no such event", word, "F, B, W, BW, optimizer, a verb (all_reduce, send, ...), or a condition (loss is nan)",
         known);
}

// In the largest unit that gives a whole number: exact, and the same as typed if that was such a number.
std::string value_text(const Breakpoint& b) {
  std::span<const Unit> units;
  if (is_time(b.counter)) units = kTimes;
  if (is_memory_counter(b.counter)) units = kBytes;
  Unit best = {units.empty() ? "" : units.front().name, 1};
  for (const Unit& unit : units)
    if (unit.factor > best.factor && std::fmod(b.value, unit.factor) == 0 && b.value != 0) best = unit;
  const double value = b.value / best.factor;
  return strprintf(value == std::floor(value) && std::fabs(value) < 1e15 ? "%.0f" : "%.17g", value) + best.name;
}

bool place_matches(const Breakpoint& b, int global_rank, const Boundary& at) {
  return (b.rank < 0 || b.rank == global_rank) && (b.step < 0 || b.step == at.step) &&
         (b.microbatch < 0 || b.microbatch == at.microbatch) && (b.stage < 0 || b.stage == at.stage);
}

}  // namespace

Breakpoint parse_breakpoint(std::string_view text) {
  // "loss>6" and "mb = 3" are parsed like "loss > 6" and "mb=3".
  std::string spaced;
  for (size_t i = 0; i < text.size() && i < 400; ++i) {
    if (text[i] == '>' || text[i] == '<') {
      spaced += std::string(" ") + text[i] + " ";
    } else {
      spaced += text[i];
    }
  }
  const std::vector<std::string> words = words_of(spaced);
  if (words.empty() || text.size() > 400)
    refuse("nothing to stop at", text, "F mb=3, all_to_all, axis=tp, rank=3, step=12, loss is nan, wait > 2ms");
  Breakpoint out;
  for (size_t i = 0; i < words.size();) {
    const size_t equals = words[i].find('=');
    const std::string next = i + 1 < words.size() ? words[i + 1] : "";
    if (next == ">" || next == "<" || next == "is") {
      i += take_condition(out, words, i);
    } else if (equals != std::string::npos) {
      set_place(out, words[i].substr(0, equals), std::string_view(words[i]).substr(equals + 1));
      ++i;
    } else if (std::find(kPlaces.begin(), kPlaces.end(), words[i]) != kPlaces.end() && !next.empty()) {
      set_place(out, words[i], next);  // "rank 3"
      i += 2;
    } else {
      set_event(out, words[i]);
      ++i;
    }
  }
  if (out.has_condition() && (!out.action.empty() || out.verb || out.axis || out.stage >= 0))
    refuse("a condition has no event, axis or stage", text, "a condition with rank=, step= or mb=");
  if (!out.action.empty() && out.axis) refuse("an action has no axis", text, "F with mb=, stage=, rank= or step=");
  if (out.axis && out.stage >= 0) refuse("a collective has no stage", text, "axis= with rank=, step= or mb=");
  return out;
}

std::string to_text(const Breakpoint& b) {
  std::vector<std::string> parts;
  if (!b.action.empty()) parts.push_back(b.action);
  if (b.verb) parts.emplace_back(name(*b.verb));
  if (b.comparison == Comparison::kNan) parts.push_back(b.counter + " is nan");
  if (b.comparison == Comparison::kOver) parts.push_back(b.counter + " > " + value_text(b));
  if (b.comparison == Comparison::kUnder) parts.push_back(b.counter + " < " + value_text(b));
  if (b.axis) parts.push_back("axis=" + std::string(name(*b.axis)));
  if (b.rank >= 0) parts.push_back("rank=" + std::to_string(b.rank));
  if (b.step >= 0) parts.push_back("step=" + std::to_string(b.step));
  if (b.microbatch >= 0) parts.push_back("mb=" + std::to_string(b.microbatch));
  if (b.stage >= 0) parts.push_back("stage=" + std::to_string(b.stage));
  return join(std::span<const std::string>(parts), " ");
}

bool matches(const Breakpoint& b, int global_rank, const Boundary& at) {
  if (b.has_condition() || !place_matches(b, global_rank, at)) return false;
  const bool is_call = at.kind == BoundaryKind::kPost;
  if (!b.action.empty()) return at.kind == BoundaryKind::kSpan && at.name == b.action;
  if (b.verb || b.axis) return is_call && (!b.verb || *b.verb == at.verb) && (!b.axis || *b.axis == at.axis);
  if (b.stage >= 0 || b.microbatch >= 0) return at.kind == BoundaryKind::kSpan;
  if (b.step >= 0) return at.kind == BoundaryKind::kStepBegin;
  return b.rank >= 0;
}

bool holds(const Breakpoint& b, std::string_view counter, double value) {
  // A counter's name may contain spaces, but a word in a breakpoint may not.
  const auto same = [](char theirs, char mine) { return theirs == mine || (theirs == ' ' && mine == '_'); };
  if (!std::equal(counter.begin(), counter.end(), b.counter.begin(), b.counter.end(), same)) return false;
  if (b.comparison == Comparison::kNan) return std::isnan(value);
  return b.comparison == Comparison::kOver ? value > b.value : value < b.value;
}

}  // namespace ranklab
