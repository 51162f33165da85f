// The picture of lesson 18: where eight replicas have one weight before an outer update, and where they have it
// afterwards. Thread rule: pure.
#pragma once
#include <string>

#include "lessons/18_how_rarely_may_replicas_talk/rare_updates.h"
#include "lessons/screen.h"

namespace ranklab::lesson {

// Draws the weight in which the replicas of `right` differ most before their first outer update.
void draw_one_weight(Screen& screen, const RareRun& right, const RareRun& yours);

}  // namespace ranklab::lesson
