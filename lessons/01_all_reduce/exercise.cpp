// Lesson 1, exercise: all-reduce on a ring.
//
// The data is cut into n chunks, one per rank. Each rank talks to its two neighbours only:
//
//   reduce-scatter, n - 1 steps. In step s = 0, 1, ... send chunk (rank - s) to the next rank, receive chunk
//     (rank - s - 1) from the previous one, and add what arrived to your own. Chunk c thus travels from rank c upwards
//     and collects the ranks in the order c, c + 1, ..., until rank c - 1 holds the whole sum of it.
//   all-gather, n - 1 steps. In step s send chunk (rank - s + 1), which is complete, and receive (rank - s) over your
//   own.
//
// What you have (lesson_api.h, exercise.h):
//   comm.rank()  comm.size()
//   comm.send(span, to)  comm.recv(span, from)      one direction, and they wait for each other
//   comm.send_recv(out, to, in, from)               both directions at once: one step
//   chunk(data, index, n)                           a span; the index goes around, so chunk -1 is chunk n - 1
//
// Check with:  ./ranklab lesson check 1
#include "exercise.h"

#include <vector>

using namespace ranklab::lesson;

// ---- warm-up: three lines. Send `mine` to the next rank and receive into `got` from the previous one, at once ----
extern "C" double from_previous([[maybe_unused]] Comm& comm, [[maybe_unused]] double mine) {
  double got = 0;
  // a span of one number: std::span(&got, 1)
  return got;
}

extern "C" void ring_all_reduce(Comm& comm, [[maybe_unused]] std::span<double> data) {
  const int n = comm.size();
  const int rank = comm.rank();
  [[maybe_unused]] const int next = (rank + 1) % n;
  [[maybe_unused]] const int previous = (rank + n - 1) % n;

  // ---- your turn: 2 (n - 1) steps ----

  // ---- end of your turn ----
}
