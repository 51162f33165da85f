#include "core/pipeline/schedule.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

// Without actions.
Schedule of_first_chain(const Schedule& whole, int num_microbatches) {
  Schedule out{whole.name, num_microbatches, whole.rank_of_stage, whole.chain_length, {}};
  out.rank_of_stage.resize(static_cast<size_t>(whole.chain_length));
  out.ranks.resize(whole.ranks.size());
  return out;
}

// Appends all passes of one microbatch through a chain of stages, while no other microbatch runs.
void add_alone(Schedule& schedule, int chain, int microbatch, bool split) {
  const int begin = chain * schedule.chain_length, end = begin + schedule.chain_length;
  const auto add = [&](const Action& action) {
    schedule.ranks[static_cast<size_t>(schedule.rank(action.stage))].push_back(action);
  };
  for (int stage = begin; stage < end; ++stage) add(forward(stage, microbatch));
  for (int stage = end - 1; stage >= begin; --stage) {
    add(split ? input_grad(stage, microbatch) : backward(stage, microbatch));
    if (split) add(weight_grad(stage, microbatch));
  }
}

}  // namespace

int Schedule::microbatches_of(int chain) const {
  const auto first = [&](int c) { return (c * num_microbatches + num_chains() - 1) / num_chains(); };
  return first(chain + 1) - first(chain);
}

std::vector<int> Schedule::stages_of(int rank) const {
  std::vector<int> stages;
  for (int stage = 0; stage < num_stages(); ++stage) {
    if (rank_of_stage[static_cast<size_t>(stage)] == rank) stages.push_back(stage);
  }
  return stages;
}

Schedule forward_only(const Schedule& whole, int num_microbatches) {
  Schedule out = of_first_chain(whole, num_microbatches);
  for (int stage = 0; stage < whole.chain_length; ++stage) {
    for (int i = 0; i < num_microbatches; ++i)
      out.ranks[static_cast<size_t>(whole.rank(stage))].push_back(forward(stage, i));
  }
  return out;
}

Schedule one_by_one(const Schedule& whole, int num_microbatches, int split) {
  Schedule out = of_first_chain(whole, num_microbatches);
  for (int microbatch = 0; microbatch < num_microbatches; ++microbatch)
    add_alone(out, 0, microbatch, microbatch == split);
  return out;
}

Schedule one_per_chain(const Schedule& whole) {
  const bool split = std::ranges::any_of(whole.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::find(actions, ActionKind::kW, &Action::kind) != actions.end();
  });
  Schedule out = whole;
  out.num_microbatches = whole.num_chains();
  out.ranks.assign(whole.ranks.size(), {});
  for (int chain = 0; chain < whole.num_chains(); ++chain) add_alone(out, chain, chain, split);
  return out;
}

void require_legal(const ScheduleCosts& costs) {
  constexpr const char *kTimes = "give times in another unit", *kRatio = "give a ratio in that range";
  const auto within = [](const char* name, double value, bool zero_too, double most, const char* fix) {
    constexpr double kLeast = 1e-12;  // the reciprocal of a smaller number may be infinite
    RANKLAB_CHECK((zero_too && value == 0) || (value >= kLeast && value <= most), ErrorKind::kInvalidArgument,
                  .where = "schedule costs", .what = std::string("no legal value for ") + name,
                  .got = strprintf("%g", value),
                  .want = strprintf("%s%g to %g", zero_too ? "0, or " : "", kLeast, most), .fix = fix);
  };
  within("f", costs.f, false, 1e12, kTimes);
  within("b", costs.b, false, 1e12, kTimes);
  within("w", costs.w, true, 1e12, kTimes);
  within("c", costs.c, true, 1e12, kTimes);
  within("pair_factor", costs.pair_factor, false, 2, kRatio);
  within("weight_grad_memory", costs.weight_grad_memory, true, 1, kRatio);
}

}  // namespace ranklab
