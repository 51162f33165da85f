#include "viz/model/store/selection.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab::viz {
namespace {

// Consumes the number at the beginning of `text`.
template <typename T>
std::optional<T> take_number(std::string_view& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

[[noreturn]] void no_selection(std::string_view text, const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, {.where = "selection " + quote(text),
                                            .what = what,
                                            .want = "like r3/B7 (rank, letters, microbatch), r3/2B7 (with the stage), "
                                                    "r3/AR12@tp (call 12 of an axis) or r3/#812 (event)",
                                            .fix = "use one of these forms"});
}

struct Wanted {
  int rank = 0;
  std::optional<size_t> index;
  std::string letters;
  std::optional<int> stage;
  std::optional<int64_t> number;  // microbatch, or sequence number of a collective
  std::string axis;
};

Wanted parse(std::string_view text) {
  Wanted out;
  std::string_view rest = text;
  if (!rest.starts_with('r')) no_selection(text, "does not begin with a rank");
  rest.remove_prefix(1);
  const auto rank = take_number<int>(rest);
  if (!rank) no_selection(text, "no rank number after r");
  out.rank = *rank;
  if (!rest.starts_with('/')) no_selection(text, "no / after the rank");
  rest.remove_prefix(1);
  if (rest.starts_with('#')) {
    rest.remove_prefix(1);
    out.index = take_number<size_t>(rest);
    if (!out.index || !rest.empty()) no_selection(text, "no event number after #");
    return out;
  }
  out.stage = take_number<int>(rest);
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    out.axis = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  // The letters end where the final digits begin: "A2A5" is A2A with sequence number 5.
  size_t digits = rest.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(rest[digits - 1])) != 0) --digits;
  out.letters = rest.substr(0, digits);
  if (out.letters.empty()) no_selection(text, "no letters after the rank");
  rest = rest.substr(digits);
  if (!rest.empty()) {
    out.number = take_number<int64_t>(rest);
    if (!out.number) no_selection(text, "a number that is too large");
  }
  return out;
}

bool fits(const Wanted& wanted, const Event& event, std::string_view event_name) {
  if (!is_slice(event)) return false;
  const std::string_view word = letters(paint_of(event, event_name));
  if (wanted.letters != (word.empty() ? event_name : word) && wanted.letters != event_name) return false;
  if (wanted.stage && event.stage != *wanted.stage) return false;
  if (!wanted.axis.empty() && (event.kind != EventKind::kCollective || ranklab::name(event.axis) != wanted.axis))
    return false;
  const int64_t number = event.kind == EventKind::kCollective ? event.sequence : event.microbatch;
  return !wanted.number || number == *wanted.number;
}

}  // namespace

std::optional<EventRef> find_selection(const TraceStore& store, std::string_view text, int step) {
  const Wanted wanted = parse(text);
  const auto rank = store.index_of_rank(wanted.rank);
  if (!rank) return std::nullopt;
  const RankTrace& trace = store.trace(*rank);
  if (wanted.index) {
    if (*wanted.index >= trace.events.size()) return std::nullopt;
    return EventRef{*rank, *wanted.index};
  }
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (step >= 0 && event.step != step) continue;
    if (fits(wanted, event, trace.names[event.name])) return EventRef{*rank, i};
  }
  return std::nullopt;
}

std::string selection_text(const TraceStore& store, EventRef ref) {
  const Event& e = store.event(ref);
  const std::string rank = "r" + std::to_string(store.rank(ref.rank_index).global_rank) + "/";
  const std::string word(letters(paint_of(e, store.name(ref))));
  if (!word.empty() && is_slice(e)) {
    std::string text = rank;
    if (e.kind == EventKind::kCollective) {
      text += word + (e.sequence >= 0 ? std::to_string(e.sequence) : "") + "@" + std::string(name(e.axis));
    } else {
      if (store.rank(ref.rank_index).several_stages && e.stage >= 0) text += std::to_string(e.stage);
      text += word + (e.microbatch >= 0 ? std::to_string(e.microbatch) : "");
    }
    if (find_selection(store, text, e.step) == ref) return text;
  }
  return rank + "#" + std::to_string(ref.event_index);
}

std::vector<EventRef> search_events(const TraceStore& store, std::string_view text, size_t limit) {
  std::vector<EventRef> found;
  const std::string wanted = lower_case(text);
  if (wanted.empty()) return found;
  for (size_t r = 0; r < store.traces().size(); ++r) {
    const RankTrace& trace = store.trace(r);
    std::vector<bool> matches;
    for (const std::string& name : trace.names) matches.push_back(lower_case(name).find(wanted) != std::string::npos);
    for (size_t i = 0; i < trace.events.size() && found.size() < limit; ++i) {
      const bool hit =
          matches[trace.events[i].name] || lower_case(store.text({r, i})).find(wanted) != std::string::npos;
      if (hit) found.push_back({r, i});
    }
  }
  return found;
}

}  // namespace ranklab::viz
