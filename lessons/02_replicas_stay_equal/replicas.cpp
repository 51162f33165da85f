#include "lessons/02_replicas_stay_equal/replicas.h"

namespace ranklab::lesson {

double ReplicaRun::exposed_share() const {
  const int64_t link_ns = records[0].link_ns();
  return link_ns == 0 ? 0 : static_cast<double>(records[0].exposed_ns) / static_cast<double>(link_ns);
}

ReplicaRun train_replicas(int ranks, int steps, const GradientPath& path, const ExerciseLibrary* exercise) {
  const auto n = static_cast<size_t>(ranks);
  ReplicaRun run;
  run.losses.assign(static_cast<size_t>(steps), 0.0);
  run.first_gradients.resize(n);
  std::vector<std::vector<double>> losses(n, run.losses);
  std::vector<NumberLists> weights(run.losses.size(), NumberLists(n));
  run.records = run_ranks({.dims = {.world = ranks}, .hardware = "laptop", .exercise = exercise}, [&](RankContext& c) {
    const auto rank = static_cast<size_t>(c.global_rank());
    Replica replica(c, path, c.global_rank(), ranks);
    for (size_t step = 0; step < run.losses.size(); ++step) {
      losses[rank][step] = replica.step();
      if (step == 0) run.first_gradients[rank] = replica.gradients();
      weights[step][rank] = replica.weights();
    }
  });
  for (const auto& mine : losses) {
    for (size_t step = 0; step < mine.size(); ++step) run.losses[step] += mine[step] / ranks;
  }
  for (const auto& of_step : weights) {
    run.versions.push_back(different(of_step));
    run.spreads.push_back(spread(of_step));
  }
  return run;
}

}  // namespace ranklab::lesson
