#include "viz/model/store/time_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/text.h"

namespace ranklab::viz {

std::string format_time(const TraceStore& store, int64_t time_ns) {
  if (store.unit_ns() == 0) return human_ns(static_cast<double>(time_ns));
  const double units = static_cast<double>(time_ns) / static_cast<double>(store.unit_ns());
  return strprintf("%.6g unit%s", units, units == 1 ? "" : "s");
}

std::string place_text(const TraceStore& store, int step) {
  const auto steps = store.steps();
  const std::string count = std::to_string(steps.size());
  const auto at = std::ranges::find(steps, step, &StepRange::step);
  if (at == steps.end()) return count + (steps.size() == 1 ? " step" : " steps");
  return std::to_string(at - steps.begin() + 1) + " of " + count;
}

double share_of(int64_t part_ns, int64_t whole_ns) {
  return whole_ns > 0 ? static_cast<double>(part_ns) / static_cast<double>(whole_ns) : 0;
}

std::string format_percent(double share) { return strprintf("%.2f %%", 100 * share); }

int64_t axis_step_ns(int64_t length_ns, int marks) {
  const double least = static_cast<double>(std::max<int64_t>(length_ns, 1)) / std::max(marks, 1);
  const double decade = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (decade * factor >= least * (1 - 1e-9)) return std::max<int64_t>(1, std::llround(decade * factor));
  }
  return std::max<int64_t>(1, std::llround(decade * 10));
}

std::string tick_text(const TraceStore& store, int64_t time_ns, int64_t step_ns) {
  constexpr std::array<std::pair<double, const char*>, 3> kUnits = {{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}}};
  const std::string usual = format_time(store, time_ns);
  if (store.unit_ns() != 0) return usual;
  for (const auto& [unit_ns, name] : kUnits) {
    if (!usual.ends_with(std::string(" ") + name)) continue;
    const int digits = static_cast<int>(std::ceil(std::log10(unit_ns / static_cast<double>(step_ns)) - 1e-9));
    const std::string exact = strprintf("%.*f %s", std::max(digits, 0), static_cast<double>(time_ns) / unit_ns, name);
    return exact.size() > usual.size() ? exact : usual;
  }
  return usual;
}

}  // namespace ranklab::viz
