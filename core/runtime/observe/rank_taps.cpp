#include "core/runtime/observe/rank_taps.h"

#include <utility>

#include "core/runtime/text/gather_texts.h"

namespace ranklab {
namespace {

// The folder is the one named in rank 0's process.
std::string agreed_folder(const std::string& folder, const RankContext& ctx, Communicator& world) {
  const std::string mine = ctx.global_rank() == 0 ? folder : "";
  return gather_texts(mine, world, ctx.control_device())[0] + "/dump";
}

// If the disk is full, the dump is lost, but training continues.
template <typename Write>
void or_lost(const DumpPlace& place, const Write& write) {
  if (place.lost == nullptr) return write();
  place.lost->forgive("dump", write);
}

}  // namespace

RankTaps::RankTaps(StepContext& context, const std::vector<ModuleWatch>& watches, DumpPlace place, Communicator& world)
    : context_(context), place_(std::move(place)) {
  // Tensors without values (core/plan) have nothing to show.
  if (!context.data.has_tokens()) return;
  const TrainConfig& c = context.plan.config;
  ModuleHooks& hooks = context.model.registry().hooks();
  if (!watches.empty()) watches_ = std::make_unique<ModuleWatches>(watches, context.ctx, hooks, world);
  if (c.dump_modules.empty() && !c.sentinels.any()) return;
  place_.folder = agreed_folder(place_.folder, context.ctx, world);
  if (!c.dump_modules.empty())
    dump_ = std::make_unique<TensorDump>(context.plan, context.ctx, context.model, place_.folder, world);
}

void RankTaps::begin_step(int64_t step) {
  ModuleHooks& hooks = context_.model.registry().hooks();
  if (watches_) {
    watches_->begin_step(step);
    hooks.set(*watches_, true);
  }
  if (!dump_) return;
  const bool there = dump_->begin_step(step);
  hooks.set(*dump_, there);
  if (UpdateWatches* updates = context_.optimizer.update_watches()) updates->set(*dump_, there);
}

void RankTaps::end_step() {
  ModuleHooks& hooks = context_.model.registry().hooks();
  if (watches_) hooks.set(*watches_, false);  // so that forwards between steps are not observed
  if (!dump_) return;
  hooks.set(*dump_, false);
  or_lost(place_, [&] { dump_->end_step(context_.optimizer); });
}

void RankTaps::dump_state(int64_t step) const {
  or_lost(place_,
          [&] { write_rank_dump(place_.folder + "/sentinel", step, context_.ctx, state_dump(context_.optimizer)); });
}

}  // namespace ranklab
