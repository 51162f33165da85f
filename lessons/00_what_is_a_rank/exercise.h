// Lesson 0: the coordinates of a rank in the mesh.
#pragma once
#include "../lesson_api.h"

namespace ranklab::lesson {

// How many ways each axis is split. Their product is the number of ranks.
struct MeshSize {
  int tp, cp, dp, pp;
};

// The coordinates of one rank: its position on every axis, counted from 0.
struct Coordinates {
  int tp, cp, dp, pp;
};

}  // namespace ranklab::lesson

// REQUIRES: 0 <= rank < tp x cp x dp x pp. Order tp-cp-ep-dp-pp: tp changes fastest, pp slowest.
extern "C" void coord(int rank, const ranklab::lesson::MeshSize& size, ranklab::lesson::Coordinates& place);
