#include "lessons/18_how_rarely_may_replicas_talk/rare_updates.h"

#include <algorithm>
#include <deque>

namespace ranklab::lesson {
namespace {

using Numbers = std::vector<double>;

// The rule for one number, of which `gradient` is known.
void outer_step(double gradient, double& outer, double& momentum, const OuterRule& rule) {
  momentum = rule.momentum * momentum + gradient;
  outer -= rule.lr * (rule.nesterov ? gradient + rule.momentum * momentum : momentum);
}

OuterMoment empty_moment() {
  const NumberLists none(kReplicas);
  return {.before = none, .own = none, .outer = none, .momentum = none};
}

// One rank's replica, and what its outer updates need.
struct UpdatedReplica {
  UpdatedReplica(RankContext& context, const GradientPath& path, int part)
      : replica(context, path, part, kReplicas), outer(replica.weights()), momentum(outer.size()) {}

  Replica replica;
  Numbers outer, momentum;
};

}  // namespace

double RareRun::exposed_share() const {
  return static_cast<double>(records[0].exposed_ns) / static_cast<double>(records[0].virtual_ns);
}

void correct_outer_update(Comm& comm, std::span<double> outer, std::span<double> own, std::span<double> momentum,
                          const OuterRule& rule) {
  Numbers gradient(own.size());
  for (size_t i = 0; i < own.size(); ++i) gradient[i] = outer[i] - own[i];
  comm.all_reduce(gradient);
  for (size_t i = 0; i < own.size(); ++i) {
    outer_step(gradient[i] / comm.size(), outer[i], momentum[i], rule);
    own[i] = outer[i];
  }
}

void no_outer_update(Comm&, std::span<double>, std::span<double>, std::span<double>, const OuterRule&) {}

RareRun train_rarely_updated(const RareUpdates& setup, const OuterFunction& update, const ExerciseLibrary* exercise) {
  const auto updates = static_cast<size_t>(setup.steps / setup.every);
  RareRun run;
  run.first = run.last = empty_moment();
  NumberLists losses(kReplicas, Numbers(updates));
  const RankSetup laptops{.dims = {.world = kReplicas}, .hardware = "laptop", .gpus_per_node = 1, .exercise = exercise};
  run.records = run_ranks(laptops, [&](RankContext& context) {
    const auto rank = static_cast<size_t>(context.global_rank());
    UpdatedReplica mine(context, setup.path, context.global_rank());
    if (rank == 0) run.start = mine.outer;
    for (size_t now = 0; now < updates; ++now) {
      for (int step = 0; step < setup.every; ++step) mine.replica.step();
      const Numbers before = mine.replica.weights();
      update(mine.replica.comm(), mine.outer, mine.replica.mutable_weights(), mine.momentum, setup.rule);
      require_all_waited(mine.replica.comm());
      losses[rank][now] = mine.replica.loss_of_all_samples();
      for (OuterMoment* moment : {now == 0 ? &run.first : nullptr, now + 1 == updates ? &run.last : nullptr}) {
        if (moment == nullptr) continue;
        moment->before[rank] = before;
        moment->own[rank] = mine.replica.weights();
        moment->outer[rank] = mine.outer;
        moment->momentum[rank] = mine.momentum;
      }
    }
  });
  for (size_t now = 0; now < updates; ++now) {
    run.losses.push_back(0);
    for (const Numbers& of_rank : losses) run.losses.back() += of_rank[now] / kReplicas;
  }
  return run;
}

RareRun train_one_after_the_other(const RareUpdates& setup) {
  const int updates = setup.steps / setup.every;
  RareRun run;
  run_ranks({.dims = {.world = 1}, .hardware = "laptop"}, [&](RankContext& context) {
    std::deque<UpdatedReplica> all;
    for (int part = 0; part < kReplicas; ++part) all.emplace_back(context, setup.path, part);
    run.start = all[0].outer;
    Numbers outer = run.start, momentum(outer.size());
    for (int now = 0; now < updates; ++now) {
      Numbers sum(outer.size());
      for (UpdatedReplica& one : all) {
        for (int step = 0; step < setup.every; ++step) one.replica.step();
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += one.replica.weights()[i];
      }
      // The mean movement is the movement of the mean.
      for (size_t i = 0; i < sum.size(); ++i)
        outer_step(outer[i] - sum[i] / kReplicas, outer[i], momentum[i], setup.rule);
      for (UpdatedReplica& one : all) std::ranges::copy(outer, one.replica.mutable_weights().begin());
      if (now == 0) run.first = {.before = {}, .own = {outer}, .outer = {outer}, .momentum = {momentum}};
      run.last = {.before = {}, .own = {outer}, .outer = {outer}, .momentum = {momentum}};
    }
  });
  return run;
}

}  // namespace ranklab::lesson
