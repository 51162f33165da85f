// Lesson 0, solution. A rank is a mixed-radix number: tp is the lowest digit, pp the highest.
#include "exercise.h"

using ranklab::lesson::Coordinates;
using ranklab::lesson::MeshSize;

extern "C" void coord(int rank, const MeshSize& size, Coordinates& place) {
  place.tp = rank % size.tp;
  place.cp = rank / size.tp % size.cp;
  place.dp = rank / (size.tp * size.cp) % size.dp;
  place.pp = rank / (size.tp * size.cp * size.dp);
}
