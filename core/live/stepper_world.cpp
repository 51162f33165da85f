#include "core/live/stepper_world.h"

#include <algorithm>
#include <climits>
#include <tuple>
#include <utility>

#include "core/trace/tracer.h"

namespace ranklab {
namespace {

using stepping::Goal;
using stepping::Seat;
using stepping::Watched;

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

uint64_t hash_of(const Boundary& at, uint64_t hash) {
  for (const char c : at.name) hash = mixed(hash, static_cast<uint8_t>(c));
  for (const int64_t value :
       {int64_t{static_cast<int>(at.kind)}, int64_t{at.step}, int64_t{at.microbatch}, int64_t{at.stage},
        int64_t{static_cast<int>(at.axis)}, int64_t{at.peer}, int64_t{at.tag}, at.virtual_ns})
    hash = mixed(hash, static_cast<uint64_t>(value));
  return hash;
}

double memory_of(const RankProbe& probe, std::string_view counter) {
  int64_t bytes = 0;
  for (int i = 0; i < static_cast<int>(MemoryCategory::kCount); ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    if (counter == "memory" || counter.substr(7) == name(category)) bytes += probe.memory_bytes(category);
  }
  return static_cast<double>(bytes);
}

bool place_matches(const Breakpoint& b, int global_rank, int step, int microbatch) {
  return (b.rank < 0 || b.rank == global_rank) && (b.step < 0 || b.step == step) &&
         (b.microbatch < 0 || b.microbatch == microbatch);
}

}  // namespace

namespace stepping {

void Seat::come_to(Boundary boundary) {
  at = std::move(boundary);
  ++events;
  hash = hash_of(at, hash);
}

void Seat::note(const Event& event, std::string_view name) {
  if (recent.size() == kRecent) recent.pop_front();
  recent.push_back({std::string(name), event});
}

}  // namespace stepping

Stepper::World::World(int world_size) {
  for (int rank = 0; rank < world_size; ++rank) {
    seats.push_back(std::make_unique<Seat>());
    seats.back()->global_rank = rank;
  }
}

void Stepper::World::begin() {
  for (auto& each : seats) {
    const int rank = each->global_rank;
    each = std::make_unique<Seat>();
    each->global_rank = rank;
    each->free_since_ns = wall_now_ns();
  }
  running = static_cast<int>(seats.size());
  begun = true;
  ended = paused = false;
  pause_requested = pause_requested || start_paused;
  goal = {};
  hits.clear();
  update_flags();
  tell();
}

StepperMode Stepper::World::mode() const {
  if (ended) return StepperMode::kEnded;
  if (paused) return StepperMode::kPaused;
  return pause_requested ? StepperMode::kPausing : StepperMode::kRunning;
}

StepperState Stepper::World::state() const {
  StepperState out{.version = version, .mode = mode(), .hits = hits};
  for (const Watched& each : breakpoints) out.breakpoints.push_back(each.breakpoint);
  if (!begun) return out;
  for (const auto& each : seats) {
    RankState& rank = out.ranks.emplace_back();
    rank.global_rank = each->global_rank;
    rank.activity = each->activity;
    if (each->activity == RankActivity::kRunning) continue;  // its own part is being written
    rank.at = each->at;
    rank.inside = each->inside;
    rank.waits_for = each->waits_for;
    rank.events = each->events;
    rank.virtual_ns = each->at.virtual_ns;
    rank.hash = each->hash;
    out.hash = mixed(mixed(out.hash, rank.hash), static_cast<uint64_t>(rank.events));
  }
  return out;
}

void Stepper::World::tell() {
  ++version;
  changed.notify_all();
}

// Computes the first step to which a breakpoint may apply: until then ranks may run concurrently.
void Stepper::World::update_flags() {
  int first = INT_MAX;
  bool any_condition = false;
  for (const Watched& each : breakpoints) {
    first = std::min(first, std::max(each.breakpoint.step, 0));
    any_condition = any_condition || each.breakpoint.has_condition();
  }
  order_from_step.store(first, std::memory_order_relaxed);
  conditions.store(any_condition && !free(), std::memory_order_relaxed);
  hold.store(!free() && (pause_requested || paused || goal.kind != Goal::kNone), std::memory_order_release);
  if (free()) order_from_step.store(INT_MAX, std::memory_order_relaxed);
}

void Stepper::World::check_events(const Seat& at) {
  for (Watched& each : breakpoints) {
    const Breakpoint& b = each.breakpoint;
    bool hit = matches(b, at.global_rank, at.at);
    Boundary where = at.at;
    if (!hit && b.has_condition() && is_memory_counter(b.counter) && at.probe && each.stopped_in_step != at.at.step &&
        place_matches(b, at.global_rank, at.at.step, at.at.microbatch)) {
      where.value = memory_of(*at.probe, b.counter);
      hit = holds(b, b.counter, where.value);
    }
    if (hit) hits.push_back({b.id, at.global_rank, std::move(where)});
  }
}

bool Stepper::World::condition_holds(const Seat& at, const Event& event, std::string_view counter, double value) const {
  return std::any_of(breakpoints.begin(), breakpoints.end(), [&](const Watched& each) {
    const Breakpoint& b = each.breakpoint;
    return b.has_condition() && holds(b, counter, value) &&
           place_matches(b, at.global_rank, event.step, event.microbatch) &&
           (counter == "wait" || each.stopped_in_step != event.step);
  });
}

void Stepper::World::note_conditions(const Seat& at, const Event& event, std::string_view counter, double value) {
  for (const Watched& each : breakpoints) {
    const Breakpoint& b = each.breakpoint;
    if (b.has_condition() && holds(b, counter, value) &&
        place_matches(b, at.global_rank, event.step, event.microbatch) &&
        (counter == "wait" || each.stopped_in_step != event.step))
      hits.push_back({b.id, at.global_rank, at.at});
  }
}

bool Stepper::World::in_order(const Seat& at) const {
  return goal.kind == Goal::kEvents || goal.kind == Goal::kRank ||
         at.at.step >= order_from_step.load(std::memory_order_relaxed);
}

bool Stepper::World::at_goal(const Seat& at) const {
  if (goal.kind == Goal::kStep) return at.at.kind == BoundaryKind::kStepBegin && at.at.step >= goal_step;
  if (goal.kind != Goal::kMicrobatch || at.events == at.events_at_start) return false;
  const BoundaryKind kind = at.at.kind;
  return kind == BoundaryKind::kStepBegin || kind == BoundaryKind::kStepEnd ||
         (kind == BoundaryKind::kSpan && at.at.microbatch != at.microbatch_at_start);
}

bool Stepper::World::may_pass(const Seat& at) const {
  return !pause_requested && !paused && !in_order(at) && !at_goal(at);
}

void Stepper::World::park(std::unique_lock<std::mutex>& lock, Seat& at) {
  at.go = false;
  stop_running(at, RankActivity::kParked);
  at.wake.wait(lock, [&] { return at.go; });
}

void Stepper::World::stop_running(Seat& at, RankActivity now) {
  const bool ran = at.activity == RankActivity::kRunning;
  at.activity = now;
  if (ran) --running;
  if (running == 0) settle();
}

void Stepper::World::resume_rank(Seat& at) {
  at.activity = RankActivity::kRunning;
  at.free_since_ns = wall_now_ns();
  ++running;
}

void Stepper::World::let_all_go() {
  paused = pause_requested = false;
  goal = {};
  for (const auto& each : seats) {
    if (each->activity != RankActivity::kParked) continue;
    resume_rank(*each);
    each->go = true;
    each->wake.notify_one();
  }
  update_flags();
  tell();
}

void Stepper::World::start(const Goal& asked) {
  const std::lock_guard lock(mutex);
  if (!paused || free()) return;
  paused = false;
  hits.clear();
  goal = asked;
  int step = INT_MAX;
  for (const auto& each : seats) {
    each->events_at_start = each->events;
    each->microbatch_at_start = each->at.microbatch;
    if (each->activity == RankActivity::kParked) step = std::min(step, each->at.step);
  }
  goal_step = static_cast<int>(std::min<int64_t>(step + std::min<int64_t>(asked.count, INT_MAX), INT_MAX - 1));
  if (goal.kind == Goal::kRank && !has(goal.global_rank)) goal = {.kind = Goal::kEvents};
  update_flags();
  tell();
  settle();
}

void Stepper::World::settle() {
  if (free() || paused) return;
  if (pause_requested || !hits.empty() || !release_next()) pause_here();
}

void Stepper::World::pause_here() {
  const bool all_done =
      std::all_of(seats.begin(), seats.end(), [](const auto& each) { return each->activity == RankActivity::kDone; });
  if (all_done) return;  // the world calls end_run() itself
  paused = true;
  pause_requested = false;
  goal = {};
  // Two ranks may reach theirs at the same time: sorting makes the report independent of which was first.
  std::sort(hits.begin(), hits.end(), [](const BreakpointHit& a, const BreakpointHit& b) {
    return std::tuple(a.at.virtual_ns, a.global_rank, a.breakpoint) <
           std::tuple(b.at.virtual_ns, b.global_rank, b.breakpoint);
  });
  for (const BreakpointHit& hit : hits) {
    for (Watched& each : breakpoints) {
      if (each.breakpoint.id != hit.breakpoint) continue;
      ++each.breakpoint.hits;
      each.stopped_in_step = hit.at.step;
    }
  }
  update_flags();
  tell();
}

// Releases the next ranks towards the goal; false when it is reached.
bool Stepper::World::release_next() {
  Seat* next = nullptr;
  if (goal.kind == Goal::kRank) {
    const Seat& target = seat(goal.global_rank);
    if (target.events - target.events_at_start >= goal.count) return false;
    next = towards(goal.global_rank);
  } else if (goal.kind == Goal::kEvents) {
    if (goal.count-- <= 0) return false;
    next = earliest({});
  } else {
    if (release_ready()) return true;
    next = earliest({});
  }
  if (next == nullptr) return false;
  resume_rank(*next);
  next->go = true;
  next->wake.notify_one();
  return true;
}

// Releases concurrently those ranks that currently no breakpoint can stop.
bool Stepper::World::release_ready() {
  bool any = false;
  for (const auto& each : seats) {
    if (each->activity != RankActivity::kParked || in_order(*each) || at_goal(*each)) continue;
    resume_rank(*each);
    each->go = any = true;
    each->wake.notify_one();
  }
  return any;
}

// The parked rank with the smallest virtual time that is not at its goal, among those in `among`, or among all if that
// is empty.
Seat* Stepper::World::earliest(const std::vector<int>& among) {
  Seat* best = nullptr;
  for (const auto& each : seats) {
    const bool asked = among.empty() || std::find(among.begin(), among.end(), each->global_rank) != among.end();
    if (!asked || each->activity != RankActivity::kParked || at_goal(*each)) continue;
    if (best == nullptr || each->at.virtual_ns < best->at.virtual_ns) best = each.get();
  }
  return best;
}

// The rank itself if it is parked, else the parked rank for which it waits, directly or through other ranks.
Seat* Stepper::World::towards(int global_rank) {
  std::vector<int> front = {global_rank};
  std::vector<bool> seen(seats.size(), false);
  while (!front.empty()) {
    if (Seat* parked = earliest(front)) return parked;
    std::vector<int> behind;
    for (const int rank : front) {
      if (seen[static_cast<size_t>(rank)]) continue;
      seen[static_cast<size_t>(rank)] = true;
      const Seat& at = seat(rank);
      if (at.activity == RankActivity::kBlocked) behind.insert(behind.end(), at.waits_for.begin(), at.waits_for.end());
    }
    front = std::move(behind);
  }
  return nullptr;
}

}  // namespace ranklab
