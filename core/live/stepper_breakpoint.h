// Where a run should stop: an event (an action, a verb), a place (axis, rank, step, microbatch, stage) or a condition
// (a counter's value, memory, a long wait). Every part that is given must apply. As text, the parts may be in any
// order:
//   F mb=3 rank=2        before that forward            all_to_all       before any of them
//   W stage=1 step=4     before that action             axis=dp rank=0   before any collective or message there
//   step=12              where step 12 begins           rank=3           before each event of rank 3
//   loss is nan          loss > 6   grad_norm > 10      wait > 2ms       a rank waited longer for its peers (virtual)
//   memory/activations > 100MiB                         memory > 2GiB    a category; their sum
//   activations_held > 3                                microbatches whose activations a pipeline rank keeps
// Thread rule: plain data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/vocabulary.h"

namespace ranklab {

struct Boundary;

enum class Comparison : uint8_t { kNone, kOver, kUnder, kNan, kCount };

struct Breakpoint {
  int id = 0;                     // given by the stepper, from 1
  std::string action = {};        // name of a span: "F", "optimizer"
  std::optional<Verb> verb = {};  // before it is posted
  std::optional<Axis> axis = {};  // of a collective or message
  int rank = -1;                  // global rank; -1: any
  int step = -1;                  // alone: the beginning of the step; together with other parts: within the step
  int microbatch = -1;
  int stage = -1;
  // A condition: a counter of the run ("loss", "grad_norm", "activations_held", "memory/activations", "memory"), or
  // "wait" in nanoseconds.
  std::string counter = {};
  Comparison comparison = Comparison::kNone;
  double value = 0;
  int64_t hits = 0;  // how often it paused the run

  bool operator==(const Breakpoint&) const = default;
  bool has_condition() const { return comparison != Comparison::kNone; }
};

// "memory" and "memory/activations": bytes of a rank, computed rather than recorded as a counter.
inline bool is_memory_counter(std::string_view counter) {
  return counter == "memory" || counter.starts_with("memory/");
}

// Throws kInvalidArgument naming the part that was not understood and the nearest known word.
Breakpoint parse_breakpoint(std::string_view text);
// Gives the same breakpoint when parsed again.
std::string to_text(const Breakpoint& breakpoint);

// Whether a rank at this boundary should be held. Conditions never match here; they are checked where their value is
// known.
bool matches(const Breakpoint& breakpoint, int global_rank, const Boundary& boundary);
// Whether the condition is about this counter and its comparison holds. REQUIRES: has_condition().
bool holds(const Breakpoint& breakpoint, std::string_view counter, double value);

}  // namespace ranklab
