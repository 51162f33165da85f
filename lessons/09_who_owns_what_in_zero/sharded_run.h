// The training in lesson 9: y = tanh(tanh(x A) V) B on 8 data-parallel ranks with AdamW, fp64, forward and backward
// written by hand. The ZeRO stage decides what is sharded (Rajbhandari et al. 2020, arXiv 1910.02054); in stage 3 a
// layer is gathered for each use. With `tied` B is A transposed, a layer that is used twice. Thread rule: one run at a
// time.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "lessons/09_who_owns_what_in_zero/exercise.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {

constexpr int kZeroRanks = 8;
constexpr int kZeroSteps = 10;

// How stage 3 obtains its layers.
struct ShardPath {
  std::function<void(int, int, std::span<const double>, Shard&)> shard;
  std::function<void(Comm&, const Shard&, std::vector<double>&)> gather;
  std::function<void(std::vector<double>&)> release;
  std::function<void(Comm&, std::span<const double>, Shard&)> reduce;
};
ShardPath straight_shards();

struct ZeroModel {
  int64_t outside = 24, inside = 16;  // sizes of x and y, and of the layers between
  bool tied = false;

  std::vector<int64_t> layers() const;  // elements of each
  int64_t parameters() const;
};

struct ZeroRun {
  std::vector<RankRecord> records;
  std::vector<double> losses;                  // per step, of the global batch
  std::vector<std::vector<double>> weights;    // of each layer, in full, after the last step
  std::vector<std::vector<double>> gradients;  // of each layer, in full, of the first step
  // The number of elements that a rank holds at the update, over all layers.
  int64_t parameters = 0, gradient_numbers = 0, moments = 0;
  int64_t most_whole = 0;     // largest number of elements of full layers that existed at once
  int64_t left_behind = 0;    // capacity that release() did not free
  int64_t wrong_lengths = 0;  // number of shards, gathered layers or gradients with a wrong length
  double gather_error = 0;    // largest difference between a gathered layer and its owners' shards

  int64_t sent_numbers() const;  // per rank and step
};

// `ranks`: with stage 0 it may be 1, for the reference.
ZeroRun train_sharded(const ZeroModel& model, int ranks, int stage, const ShardPath& path,
                      const ExerciseLibrary* exercise = nullptr);

}  // namespace ranklab::lesson
