#include "viz/model/store/deep_link.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/model/store/selection.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

[[noreturn]] void bad_part(std::string_view link, std::string_view part, const std::string& what,
                           const std::string& want) {
  throw Error(ErrorKind::kInvalidArgument, {.where = "link " + quote(link),
                                            .what = what,
                                            .got = quote(part),
                                            .want = want,
                                            .fix = "write links like step=12,t=3.4ms,sel=r3/B7"});
}

int parse_step(std::string_view link, std::string_view text) {
  int step = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (error != std::errc() || end != text.data() + text.size() || step < 0)
    bad_part(link, text, "step is not a number", "a whole number, 0 or more");
  return step;
}

struct TimeUnit {
  std::string_view name;
  int64_t ns;
};
constexpr std::array<TimeUnit, 4> kTimeUnits = {{{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};

int64_t parse_time(std::string_view link, std::string_view text, int64_t unit_ns) {
  const std::string want = unit_ns > 0 ? "a number of units, or with ns, us, ms or s" : "a number with ns, us, ms or s";
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) bad_part(link, text, "t is not a time", want);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  int64_t scale = unit.empty() ? unit_ns : 0;
  for (const TimeUnit& known : kTimeUnits) {
    if (unit == known.name) scale = known.ns;
  }
  if (scale == 0) bad_part(link, text, unit.empty() ? "t has no unit" : "t has an unknown unit", want);
  const double ns = value * static_cast<double>(scale);
  if (!(std::abs(ns) <= static_cast<double>(kTimeLimit)))
    bad_part(link, text, "t is out of range", "less than 52 days");
  return std::llround(ns);
}

std::string time_text(int64_t ns, int64_t unit_ns) {
  if (unit_ns > 0 && ns % unit_ns == 0) return std::to_string(ns / unit_ns);
  for (const TimeUnit& unit : kTimeUnits) {
    // Uses the largest unit in which three decimals are exact.
    if (unit.ns > 1 && (std::abs(ns) < unit.ns || ns % (unit.ns / 1000 > 0 ? unit.ns / 1000 : 1) != 0)) continue;
    if (unit.ns == 1) break;
    std::string text = strprintf("%.3f", static_cast<double>(ns) / static_cast<double>(unit.ns));
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + std::string(unit.name);
  }
  return std::to_string(ns) + "ns";
}

}  // namespace

DeepLink parse_deep_link(std::string_view text, int64_t unit_ns) {
  DeepLink link;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) bad_part(text, part, "a part without =", "step=, t= or sel=");
    const std::string_view key = part.substr(0, equals), value = part.substr(equals + 1);
    if (key == "step") {
      link.step = parse_step(text, value);
    } else if (key == "t") {
      link.time_ns = parse_time(text, value, unit_ns);
    } else if (key == "sel") {
      if (value.empty()) bad_part(text, part, "sel is empty", "like r3/B7");
      link.selection = value;
    } else {
      bad_part(text, part, "an unknown part", "step=, t= or sel=");
    }
  }
  return link;
}

std::string to_text(const DeepLink& link, int64_t unit_ns) {
  std::vector<std::string> parts;
  if (link.step) parts.push_back("step=" + std::to_string(*link.step));
  if (link.time_ns) parts.push_back("t=" + time_text(*link.time_ns, unit_ns));
  if (!link.selection.empty()) parts.push_back("sel=" + link.selection);
  return join(parts, ",");
}

// What could be selected: "ranks 0 to 7", or, if the rank exists but the event does not, "r3/F0, r3/BW0, ...".
std::string what_could_be_selected(const TraceStore& store, const std::string& selection, TimeRange range) {
  if (store.ranks().empty()) return "an event of the trace";
  int rank = -1;
  if (selection.starts_with('r')) std::from_chars(selection.data() + 1, selection.data() + selection.size(), rank);
  const auto index = store.index_of_rank(rank);
  if (!index)
    return "ranks " + std::to_string(store.ranks().front().global_rank) + " to " +
           std::to_string(store.ranks().back().global_rank);
  std::vector<std::string> names;
  const RankTrace& trace = store.trace(*index);
  for (size_t i = 0; i < trace.events.size() && names.size() < 4; ++i) {
    const int64_t begin = begin_ns(trace.events[i], store.clock());
    if (trace.events[i].kind != EventKind::kCompute || begin < range.begin_ns || begin >= range.end_ns) continue;
    const std::string name = "r" + std::to_string(rank) + "/" + store.text({*index, static_cast<uint32_t>(i)});
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names.empty() ? "an event of r" + std::to_string(rank)
                       : join(std::span<const std::string>(names), ", ") + ", ...";
}

Goto resolve(const TraceStore& store, const DeepLink& link) {
  Goto out;
  TimeRange range = store.range();
  if (link.step) {
    const auto window = store.step_window(*link.step);
    const std::string there = store.steps().empty() ? "no steps in this trace"
                                                    : "steps " + std::to_string(store.steps().front().step) + " to " +
                                                          std::to_string(store.steps().back().step);
    RANKLAB_CHECK(window.has_value(), ErrorKind::kInvalidArgument, .where = "link",
                  .what = "the trace has no such step", .got = "step=" + std::to_string(*link.step), .want = there,
                  .fix = "use a step that is there, or leave it out");
    range = window->range;
    out.step = *link.step;
  }
  out.time_ns = range.begin_ns + link.time_ns.value_or(0);
  if (!link.selection.empty()) {
    out.event = find_selection(store, link.selection, out.step);
    RANKLAB_CHECK(out.event.has_value(), ErrorKind::kInvalidArgument, .where = "link",
                  .what = "the trace has no such event" + (link.step ? " in that step" : std::string()),
                  .got = "sel=" + link.selection, .want = what_could_be_selected(store, link.selection, range),
                  .fix = "leave out sel, or name an event that is there");
    if (!link.time_ns) out.time_ns = store.begin_ns(*out.event);
  }
  if (out.step < 0) out.step = store.step_at(out.time_ns);
  return out;
}

DeepLink link_to(const TraceStore& store, int64_t time_ns, std::optional<EventRef> event) {
  DeepLink link;
  int step = store.step_at(time_ns);
  if (event && store.event(*event).step >= 0) step = store.event(*event).step;
  int64_t origin = store.range().begin_ns;
  if (const auto window = step >= 0 ? store.step_window(step) : std::nullopt) {
    link.step = step;
    origin = window->range.begin_ns;
  }
  link.time_ns = time_ns - origin;
  if (event) link.selection = selection_text(store, *event);
  return link;
}

}  // namespace ranklab::viz
