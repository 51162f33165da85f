// The meanings of the colours of a trace's blocks: one entry for each colour that occurs. Cost: O(events). Thread rule:
// pure.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct LegendEntry {
  Rgba colour = 0;
  std::string words;  // "all_reduce, reduce_scatter": the kinds of event with this colour that the trace has
};

std::vector<LegendEntry> legend_of(const TraceStore& store);
// The legend of a picture that draws only a part of a trace; `drawn`: for each Paint, whether the picture has such
// blocks.
std::vector<LegendEntry> legend_of(const std::array<bool, kPaints>& drawn);

}  // namespace ranklab::viz
