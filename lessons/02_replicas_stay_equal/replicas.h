// The training in lesson 2: replicas of a perceptron (replica.h), a rank each, that average their gradients. Virtual
// time is that of a laptop. Thread rule: one run at a time.
#pragma once
#include <vector>

#include "lessons/02_replicas_stay_equal/replica.h"
#include "lessons/compare.h"

namespace ranklab::lesson {

struct ReplicaRun {
  std::vector<RankRecord> records;  // per rank
  std::vector<double> losses;       // per step, of the global batch
  std::vector<int> versions;        // per step: number of different models
  NumberLists first_gradients;      // per rank: the gradients that the first step used
  std::vector<double> spreads;      // per step: largest difference of a weight between two ranks

  double exposed_share() const;  // of the time on the link, for rank 0
};

ReplicaRun train_replicas(int ranks, int steps, const GradientPath& path, const ExerciseLibrary* exercise = nullptr);

}  // namespace ranklab::lesson
