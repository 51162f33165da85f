#include "core/live/stepper.h"

#include <algorithm>
#include <utility>

#include "core/live/stepper_world.h"
#include "core/trace/tracer.h"

namespace ranklab {

using stepping::Goal;
using stepping::Seat;

Stepper::Stepper(int world_size, bool start_paused) : world_(std::make_unique<World>(world_size)) {
  world_->start_paused = start_paused;
  world_->pause_requested = start_paused;
  world_->update_flags();
}

Stepper::~Stepper() = default;

StepperState Stepper::state() const {
  const std::lock_guard lock(world_->mutex);
  return world_->state();
}

void Stepper::pause() {
  const std::lock_guard lock(world_->mutex);
  if (world_->mode() != StepperMode::kRunning) return;
  world_->pause_requested = true;
  world_->update_flags();
  world_->tell();
  // All ranks may already be waiting for a viewer's command or for one another.
  if (world_->running == 0) world_->settle();
}

void Stepper::resume() { world_->start({.kind = Goal::kNone}); }
void Stepper::step_events(int64_t count) { world_->start({.kind = Goal::kEvents, .count = count}); }
void Stepper::step_rank(int global_rank, int64_t count) {
  world_->start({.kind = Goal::kRank, .count = count, .global_rank = global_rank});
}
void Stepper::step_microbatch() { world_->start({.kind = Goal::kMicrobatch}); }
void Stepper::step_training(int64_t count) { world_->start({.kind = Goal::kStep, .count = count}); }

void Stepper::add_breakpoint(const Breakpoint& breakpoint) {
  const std::lock_guard lock(world_->mutex);
  world_->breakpoints.push_back({.breakpoint = breakpoint, .stopped_in_step = -1});
  world_->breakpoints.back().breakpoint.id = world_->next_id++;
  world_->breakpoints.back().breakpoint.hits = 0;
  world_->update_flags();
  world_->tell();
}

void Stepper::remove_breakpoint(int id) {
  const std::lock_guard lock(world_->mutex);
  std::erase_if(world_->breakpoints, [&](const auto& each) { return each.breakpoint.id == id; });
  world_->update_flags();
  world_->tell();
}

int Stepper::world_size() const { return static_cast<int>(world_->seats.size()); }

bool Stepper::wait_paused(std::chrono::milliseconds limit) {
  std::unique_lock lock(world_->mutex);
  return world_->changed.wait_for(lock, limit, [&] { return world_->paused || world_->ended; });
}

void Stepper::detach() {
  const std::lock_guard lock(world_->mutex);
  world_->detached = true;
  world_->let_all_go();
}

std::shared_ptr<const RankProbe> Stepper::probe(int global_rank) const {
  const std::lock_guard lock(world_->mutex);
  return world_->has(global_rank) ? world_->seat(global_rank).probe : nullptr;
}

std::vector<RecordedEvent> Stepper::last_events(int global_rank) const {
  const std::lock_guard lock(world_->mutex);
  if (!world_->has(global_rank)) return {};
  const Seat& seat = world_->seat(global_rank);
  if (seat.activity == RankActivity::kRunning) return {};
  return {seat.recent.begin(), seat.recent.end()};
}

void Stepper::set_probe(int global_rank, std::shared_ptr<const RankProbe> probe) {
  const std::lock_guard lock(world_->mutex);
  world_->seat(global_rank).probe = std::move(probe);
}

void Stepper::arrive(int global_rank, Boundary boundary) {
  Seat& me = world_->seat(global_rank);
  me.come_to(std::move(boundary));
  if (!world_->hold.load(std::memory_order_acquire) &&
      me.at.step < world_->order_from_step.load(std::memory_order_relaxed))
    return;
  std::unique_lock lock(world_->mutex);
  if (world_->free()) return;
  world_->check_events(me);
  if (!world_->may_pass(me)) world_->park(lock, me);
}

void Stepper::recorded(int global_rank, const Event& event, std::string_view name) {
  Seat& me = world_->seat(global_rank);
  me.note(event, name);
  if (!world_->conditions.load(std::memory_order_acquire)) return;
  const bool counter = event.kind == EventKind::kCounter;
  if (!counter && event.kind != EventKind::kCollective) return;
  const double value = counter ? event.value : static_cast<double>(event.virtual_peer_wait_ns);
  std::unique_lock lock(world_->mutex);
  if (world_->free() || !world_->condition_holds(me, event, counter ? name : "wait", value)) return;
  me.come_to({.kind = BoundaryKind::kValue,
              .name = std::string(counter ? name : "wait"),
              .step = event.step,
              .microbatch = event.microbatch,
              .virtual_ns = counter ? event.virtual_begin_ns : event.virtual_end_ns,
              .value = value});
  world_->note_conditions(me, event, counter ? name : "wait", value);
  world_->park(lock, me);
}

void Stepper::begin_run() {
  const std::lock_guard lock(world_->mutex);
  world_->begin();
}

void Stepper::blocked(int global_rank, std::string inside, std::vector<int> waits_for) {
  const std::lock_guard lock(world_->mutex);
  Seat& seat = world_->seat(global_rank);
  seat.inside = std::move(inside);
  seat.waits_for = std::move(waits_for);
  world_->stop_running(seat, RankActivity::kBlocked);
}

void Stepper::unblocked(int global_rank) {
  const std::lock_guard lock(world_->mutex);
  Seat& seat = world_->seat(global_rank);
  if (seat.activity != RankActivity::kBlocked) return;
  seat.inside.clear();
  seat.waits_for.clear();
  world_->resume_rank(seat);
}

void Stepper::rank_ended(int global_rank) {
  const std::lock_guard lock(world_->mutex);
  world_->stop_running(world_->seat(global_rank), RankActivity::kDone);
}

void Stepper::end_run() {
  const std::lock_guard lock(world_->mutex);
  world_->ended = true;
  world_->let_all_go();
}

std::optional<int64_t> Stepper::free_since_ns(int global_rank) const {
  const std::lock_guard lock(world_->mutex);
  const Seat& seat = world_->seat(global_rank);
  if (seat.activity == RankActivity::kParked) return std::nullopt;
  return seat.free_since_ns;
}

}  // namespace ranklab
