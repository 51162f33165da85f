// One rank's virtual time as two rows of characters: its compute, and its communication. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>

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

}  // namespace ranklab::lesson
