#include "cli/plan/measured_text.h"

#include <algorithm>
#include <numeric>

#include "cli/common/table.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// "1, 3, 2": the layouts in order of time, by their position in the plan.
std::string order_text(const std::vector<MeasuredLayout>& rows, double MeasuredLayout::*time) {
  std::vector<size_t> places(rows.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::stable_sort(places, {}, [&](size_t place) { return rows[place].*time; });
  std::vector<std::string> names;
  for (const size_t place : places) names.push_back(std::to_string(place + 1));
  return join(names, ", ");
}

}  // namespace

std::string measured_text(const std::vector<MeasuredLayout>& rows) {
  Table table({"", "layout", "planned", "virtual time of the run", "wall time here"});
  for (size_t i = 0; i < rows.size(); ++i)
    table.add({std::to_string(i + 1), "`" + rows[i].planned.choice.flags() + "`",
               human_ns(rows[i].planned.step_s * 1e9), human_ns(rows[i].virtual_s * 1e9),
               human_ns(rows[i].wall_s * 1e9)});
  std::vector<std::string> planned;
  for (size_t i = 0; i < rows.size(); ++i) planned.push_back(std::to_string(i + 1));
  return table.for_stdout() + "\nthe fastest first: planned " + join(planned, ", ") + "; run " +
         order_text(rows, &MeasuredLayout::virtual_s) + "; wall time of this machine's cores " +
         order_text(rows, &MeasuredLayout::wall_s) + "\n";
}

}  // namespace ranklab
