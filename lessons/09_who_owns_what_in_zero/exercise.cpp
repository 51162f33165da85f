// Lesson 9, exercise: own an eighth of everything (ZeRO stage 3).
//
// Eight ranks train one model, each on samples of its own. No rank keeps all parameters: a layer is gathered for each
// use, freed after it, and its gradient is summed so that each rank gets only its own shard. The optimizer then updates
// that shard only.
//
//   shard    part = elements / ranks, rounded up; rank r keeps [r x part, (r + 1) x part), zeros past the end
//   gather   all ranks' shards one after another, without the padding at the end
//   release  free the memory: clear() alone keeps it
//   reduce   pad the gradient with zeros to ranks x part; one reduce_scatter; keep your shard
//
// What you have (lesson_api.h, exercise.h):
//   dp.rank()  dp.size()
//   dp.all_gather(mine, all)      n numbers of each rank -> size x n
//   dp.reduce_scatter(all, mine)  size x n -> the sum of this rank's n
//   mine.elements  mine.parameters  mine.gradients
//
// Check with:  ./ranklab lesson check 9
#include "exercise.h"

using namespace ranklab::lesson;

// ---- your turn: all four functions ----

extern "C" void shard([[maybe_unused]] int rank, [[maybe_unused]] int size,
                      [[maybe_unused]] std::span<const double> whole, [[maybe_unused]] Shard& mine) {}

extern "C" void gather([[maybe_unused]] Comm& dp, [[maybe_unused]] const Shard& mine,
                       [[maybe_unused]] std::vector<double>& whole) {}

extern "C" void release([[maybe_unused]] std::vector<double>& whole) {}

extern "C" void reduce([[maybe_unused]] Comm& dp, [[maybe_unused]] std::span<const double> gradient,
                       [[maybe_unused]] Shard& mine) {}

// ---- end of your turn ----
