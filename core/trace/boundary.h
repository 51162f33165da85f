// Where a rank may be held, and by whom: the places at which a Tracer records. Torch-free. Thread rule: plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/trace/event.h"

namespace ranklab {

// The places where a rank may be held. It has not yet begun what the boundary names.
enum class BoundaryKind : uint8_t {
  kStepBegin,  // a training step
  kSpan,       // an action or op group: F, B, W, BW, optimizer
  kPost,       // a collective or message is posted (and waited for, unless it is asynchronous)
  kWait,       // the end of an asynchronous one is waited for
  kValue,      // a counter was recorded; a place only where a breakpoint's condition holds
  kStepEnd,    // the step's loss is known
  kCount
};
constexpr std::string_view name(BoundaryKind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"begin", "span", "post", "wait", "value", "end"};
  return kNames[static_cast<size_t>(kind)];
}

struct Boundary {
  BoundaryKind kind = BoundaryKind::kStepBegin;
  std::string name = {};  // "F", "all_reduce", "loss"
  int step = -1;
  int microbatch = -1;
  int stage = -1;               // pipeline stage of an action
  Axis axis = Axis::kWorld;     // kPost, kWait
  Verb verb = Verb::kBarrier;   // kPost, kWait
  std::vector<int> group = {};  // kPost, kWait: global ranks of the group
  int peer = -1;                // kPost, kWait: global rank of the root or the peer, else -1
  int tag = 0;
  int64_t virtual_ns = 0;  // the rank's clock
  double value = 0;        // kValue

  bool operator==(const Boundary&) const = default;
};

// Holds ranks at boundaries (core/live/stepper.h). Thread rule: called on the rank's own thread.
class RankHolder {
 public:
  virtual ~RankHolder() = default;
  virtual void arrive(int global_rank, Boundary boundary) = 0;  // may not return for hours
  virtual void recorded(int global_rank, const Event& event, std::string_view name) = 0;
};

}  // namespace ranklab
