// The ring step by step: how many ranks' numbers each chunk of each rank contains. Thread rule: one run at a time.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "lessons/rank_run.h"
#include "lessons/screen.h"

namespace ranklab::lesson {

constexpr int kRingRanks = 8;

using Algorithm = std::function<void(Comm&, std::span<double>)>;
using Buffers = std::vector<std::vector<double>>;  // per rank

void draw_ring(Screen& screen);
// The learner's ring and the correct one at six steps; rows that differ are marked.
void draw_beside(Screen& screen, const RankSetup& setup, const Algorithm& ring);

}  // namespace ranklab::lesson
