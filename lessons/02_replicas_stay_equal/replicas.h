// The training in lesson 2: an 8-layer perceptron, y = tanh(x W), replicated over the ranks, with plain SGD. Forward
// and backward are written by hand, so that the moment at which each gradient is ready is visible. fp64. Virtual time
// is that of a laptop. Thread rule: one run at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "lessons/02_replicas_stay_equal/exercise.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {

constexpr int kLayers = 8;
constexpr int kLayersPerBucket = 2;
constexpr int64_t kHidden = 64;
constexpr int64_t kSamples = 1024;  // the global batch
constexpr int64_t kParameters = kLayers * kHidden * kHidden;

// How gradients are averaged.
struct GradientPath {
  std::function<void(Comm&, Bucket&)> gradient_ready;
  std::function<void(Comm&, std::span<Bucket>)> finish;
};
GradientPath no_averaging();
GradientPath averaged_after_backward();
GradientPath averaged_while_backward_runs();

struct ReplicaRun {
  std::vector<RankRecord> records;                   // per rank
  std::vector<double> losses;                        // per step, of the global batch
  std::vector<std::vector<uint64_t>> fingerprints;   // of the weights, per step and rank
  std::vector<std::vector<double>> first_gradients;  // per rank: the gradients that the first step used
  std::vector<double> spreads;                       // per step: largest difference of a weight between two ranks

  int versions(int step) const;  // number of different weights among the ranks after this step
  double exposed_share() const;  // of the time on the link, for rank 0
};

ReplicaRun train_replicas(int ranks, int steps, const GradientPath& path, const ExerciseLibrary* exercise = nullptr);

}  // namespace ranklab::lesson
