// The training in lesson 18: 8 replicas (lesson 2's, a rank each) on laptops that gigabit Ethernet connects. They train
// on their own, and outer updates bring them together. Thread rule: one run at a time.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "lessons/02_replicas_stay_equal/replica.h"
#include "lessons/18_how_rarely_may_replicas_talk/exercise.h"
#include "lessons/compare.h"

namespace ranklab::lesson {

constexpr int kReplicas = 8;

struct RareUpdates {
  int steps = 0;
  int every = 1;  // steps between two outer updates; divides `steps`
  OuterRule rule = {};
  GradientPath path = no_averaging();
};

// Numbers of all replicas around one outer update. Those of the reference, which are equal, are there once.
struct OuterMoment {
  NumberLists before, own, outer, momentum;  // before: own parameters before the update
};

struct RareRun {
  std::vector<RankRecord> records;  // per rank
  std::vector<double> start;        // the parameters with which all replicas begin
  OuterMoment first, last;          // the first and the last outer update
  std::vector<double> losses;       // after each outer update: of all samples, the mean over the replicas

  double exposed_share() const;  // of rank 0's time
};

using OuterFunction = std::function<void(Comm&, std::span<double> outer, std::span<double> own,
                                         std::span<double> momentum, const OuterRule& rule)>;
// What the exercise asks for.
void correct_outer_update(Comm& comm, std::span<double> outer, std::span<double> own, std::span<double> momentum,
                          const OuterRule& rule);
// For replicas that are equal.
void no_outer_update(Comm&, std::span<double>, std::span<double>, std::span<double>, const OuterRule&);

RareRun train_rarely_updated(const RareUpdates& setup, const OuterFunction& update,
                             const ExerciseLibrary* exercise = nullptr);
// The same on one rank, which trains the replicas one after the other and adds up their parameters; has no records and
// losses.
RareRun train_one_after_the_other(const RareUpdates& setup);

}  // namespace ranklab::lesson
