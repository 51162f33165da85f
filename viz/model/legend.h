// What the colours of a trace's blocks mean: one entry for each colour that occurs. Cost: O(events). Thread rule: pure.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct LegendEntry {
  Rgba colour = 0;
  std::string words;  // "all_reduce, reduce_scatter": the kinds of that colour that the trace has
};

std::vector<LegendEntry> legend_of(const TraceStore& store);
// Of a picture that draws a part of a trace: by Paint, whether it draws blocks of that kind.
std::vector<LegendEntry> legend_of(const std::array<bool, kPaints>& drawn);

}  // namespace ranklab::viz
