#include "lessons/06_who_talks_to_whom_in_moe/balance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "core/base/numbers/philox.h"
#include "core/base/text.h"

namespace ranklab::lesson {
namespace {

constexpr int kRanks = 8;
constexpr size_t kExperts = 8, kTokensOfRank = 512;
// The router's preference for each expert.
constexpr std::array<double, kExperts> kLean = {1.2, 0.8, 0.4, 0.1, -0.1, -0.4, -0.8, -1.2};

// The number of token copies per expert, for the tokens of a rank in a step.
std::vector<double> route(int rank, int step, std::span<const double> bias) {
  const RandomStream stream(6, RandomPurpose::kTest, "router " + std::to_string(rank), static_cast<uint64_t>(step));
  std::vector<float> normal(kTokensOfRank * kExperts);
  stream.fill_normal(0, normal);
  std::vector<double> load(kExperts, 0.0);
  for (size_t t = 0; t < kTokensOfRank; ++t) {
    std::array<double, kExperts> score{};
    for (size_t e = 0; e < kExperts; ++e)
      score[e] = 1 / (1 + std::exp(-(static_cast<double>(normal[t * kExperts + e]) + kLean[e]))) + bias[e];
    const auto first = static_cast<size_t>(std::ranges::max_element(score) - score.begin());
    score[first] = -HUGE_VAL;
    ++load[first];
    ++load[static_cast<size_t>(std::ranges::max_element(score) - score.begin())];
  }
  return load;
}

}  // namespace

BiasRule no_rule() {
  return [](Comm&, std::span<const double>, double, std::span<double>) {};
}

BiasRule sign_rule() {
  return [](Comm& ep, std::span<const double> load, double speed, std::span<double> bias) {
    std::vector<double> all(load.begin(), load.end());
    ep.all_reduce(all);
    const double mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
    for (size_t e = 0; e < bias.size(); ++e) bias[e] += all[e] > mean ? -speed : all[e] < mean ? speed : 0;
  };
}

double BalanceRun::max_over_mean(int step, int steps) const {
  std::vector<double> sum(kExperts, 0.0);
  for (int s = step; s < step + steps; ++s)
    for (size_t e = 0; e < kExperts; ++e) sum[e] += load[static_cast<size_t>(s)][e];
  return std::ranges::max(sum) * kExperts / std::accumulate(sum.begin(), sum.end(), 0.0);
}

int BalanceRun::first_even_step(double limit) const {
  for (int step = 0; step < static_cast<int>(load.size()); ++step)
    if (max_over_mean(step) < limit) return step;
  return -1;
}

std::string one_update(const BiasRule& rule, const ExerciseLibrary& exercise) {
  std::vector<std::vector<double>> biases(kRanks, std::vector<double>(kExperts, 0.0));
  run_ranks({.dims = {.world = kRanks, .ep = kRanks}, .exercise = &exercise}, [&](RankContext& context) {
    const auto ep = make_comm(context.comm(Axis::kEp));
    std::vector<double> load = {3, 2, 1, 2, 2, 2, 3, 1};
    const double odd = ep->rank() % 2 == 0 ? 1 : -1;
    load[3] += odd;
    load[4] -= odd;
    rule(*ep, load, kBalanceSpeed, biases[static_cast<size_t>(ep->rank())]);
  });
  std::vector<std::string> words;
  for (const double bias : biases[0]) {
    const double speeds = bias / kBalanceSpeed;
    words.push_back(speeds == 0 ? "0" : strprintf("%+.3g", speeds));
  }
  return join(std::span<const std::string>(words), " ");
}

BalanceRun balance_experts(const BiasRule& rule, const ExerciseLibrary* exercise) {
  using Table = std::vector<std::vector<double>>;
  std::vector<Table> loads(kRanks), biases(kRanks);
  run_ranks({.dims = {.world = kRanks, .ep = kRanks}, .exercise = exercise}, [&](RankContext& context) {
    const auto ep = make_comm(context.comm(Axis::kEp));
    std::vector<double> bias(kExperts, 0.0);
    const auto me = static_cast<size_t>(ep->rank());
    for (int step = 0; step < kBalanceSteps; ++step) {
      const std::vector<double> load = route(ep->rank(), step, bias);
      rule(*ep, load, kBalanceSpeed, bias);
      loads[me].push_back(load);
      biases[me].push_back(bias);
    }
  });
  BalanceRun run;
  run.bias = biases[0];
  run.equal_biases = std::ranges::all_of(biases, [&](const Table& mine) { return mine == biases[0]; });
  run.load = loads[0];
  for (size_t rank = 1; rank < kRanks; ++rank)
    for (size_t step = 0; step < run.load.size(); ++step)
      for (size_t e = 0; e < kExperts; ++e) run.load[step][e] += loads[rank][step][e];
  return run;
}

}  // namespace ranklab::lesson
