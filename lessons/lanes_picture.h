// Virtual time as rows of characters: two rows for one rank (compute and communication), or one row for each rank.
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/trace/event.h"
#include "lessons/screen.h"

namespace ranklab::lesson {

struct TimeWindow {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int step = -1;  // only events of this step; -1: all
};

//   compute  FFFFFFFFFBBBB|BBB|·····   a span is filled with the first letter of its name; dots wait for the link
//   link                  ▒▒▒▒ ▒▒▒▒
void draw_lanes(Screen& screen, const std::string& title, const RankTrace& trace, TimeWindow window);

struct GlyphSpan {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::string glyph;  // one column wide
};
//   rank 3  333322221111000·········    a row per rank; dots where none of its spans is
void draw_rank_rows(Screen& screen, const std::vector<std::vector<GlyphSpan>>& ranks, TimeWindow window);

}  // namespace ranklab::lesson
