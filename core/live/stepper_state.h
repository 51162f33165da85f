// The visible state of a stepper: where each rank is, and why the world is paused. Thread rule: plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/live/stepper_breakpoint.h"
#include "core/trace/boundary.h"

namespace ranklab {

// "F mb 3 stage 1", "all_reduce on dp [0 2]", "wait for recv from 4 on pp", "step 12 begins"
std::string to_text(const Boundary& boundary);
// The value of a counter with its unit: bytes for memory, nanoseconds for "wait".
std::string counter_text(std::string_view counter, double value);

enum class RankActivity : uint8_t {
  kRunning,
  kParked,   // held at `at`
  kBlocked,  // has passed `at` and sleeps in the verb `inside`, because the ranks in `waits_for` have not posted it
  kDone,     // its body has returned
  kCount
};
constexpr std::string_view name(RankActivity activity) {
  constexpr std::array<std::string_view, 4> kNames = {"running", "parked", "blocked", "done"};
  return kNames[static_cast<size_t>(activity)];
}

struct RankState {
  int global_rank = 0;
  RankActivity activity = RankActivity::kRunning;
  Boundary at = {};                 // the last boundary it reached; not filled while it runs
  std::string inside = {};          // kBlocked: "all_reduce(sum) fp32 [64] at model.cpp:12 (tp[0 1] call #3)"
  std::vector<int> waits_for = {};  // kBlocked: global ranks
  int64_t events = 0;               // number of boundaries it has reached
  int64_t virtual_ns = 0;
  uint64_t hash = 0;  // of all its boundaries, in order, with their virtual times

  bool operator==(const RankState&) const = default;
};

// Which breakpoint was hit, and where.
struct BreakpointHit {
  int breakpoint = 0;  // its id
  int global_rank = 0;
  Boundary at = {};

  bool operator==(const BreakpointHit&) const = default;
};

enum class StepperMode : uint8_t {
  kRunning,  // runs until a command's goal, a breakpoint or pause()
  kPausing,  // pause() was called; some ranks still run to their next boundary
  kPaused,   // every rank is parked, blocked or done; nothing changes until a command
  kEnded,    // the run is over, or failed
  kCount
};
constexpr std::string_view name(StepperMode mode) {
  constexpr std::array<std::string_view, 4> kNames = {"running", "pausing", "paused", "ended"};
  return kNames[static_cast<size_t>(mode)];
}

struct StepperState {
  uint64_t version = 0;  // grows with every pause, command and breakpoint: compare it to detect changes
  StepperMode mode = StepperMode::kRunning;
  std::vector<RankState> ranks = {};         // by global rank; empty before the run begins
  std::vector<BreakpointHit> hits = {};      // why it paused, by virtual time; empty: reached a command's goal
  std::vector<Breakpoint> breakpoints = {};  // by id
  uint64_t hash = 0;                         // of the ranks' hashes; the same in every run that was paused here

  bool operator==(const StepperState&) const = default;
};
// Global rank that a single-event step would run: the parked one with the smallest virtual time (ties: the lowest
// rank); -1 when none is parked.
int next_rank(const StepperState& state);
// The step that every rank has at least begun; -1 before the first.
int current_step(const StepperState& state);

}  // namespace ranklab
