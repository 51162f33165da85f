// Lesson 0, exercise: the coordinates of a rank.
//
// Ranks are numbered 0, 1, 2, ... The order "tp-cp-ep-dp-pp" defines the numbering: consecutive ranks are neighbours on
// the tp axis; when tp is full, cp goes up by one; then dp; pp changes slowest. (ep is in the name of the order, too,
// but the experts of a mixture-of-experts layer use these same ranks: it never multiplies the world size.)
//
// Check with:  ./ranklab lesson check 0
#include "exercise.h"

using ranklab::lesson::Coordinates;
using ranklab::lesson::MeshSize;

extern "C" void coord([[maybe_unused]] int rank, [[maybe_unused]] const MeshSize& size, Coordinates& place) {
  // ---- your turn: the four coordinates of `rank` ----
  place = {.tp = 0, .cp = 0, .dp = 0, .pp = 0};
  // ---- end of your turn ----
}
