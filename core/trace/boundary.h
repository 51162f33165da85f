// The boundaries at which a rank may be held: the points where a Tracer records. Torch-free. Thread rule: plain data.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/type_change.h"
#include "core/base/vocabulary.h"
#include "core/trace/event.h"

namespace ranklab {

// The kinds of boundary. A held rank has not yet begun what the boundary names.
enum class BoundaryKind : uint8_t {
  kStepBegin,  // a training step
  kSpan,       // an action or op group: F, B, W, BW, optimizer
  kPost,       // a collective or message is posted (and waited for, unless it is asynchronous)
  kWait,       // the wait for an asynchronous call begins
  kValue,      // a counter was recorded; a boundary only where a breakpoint's condition holds
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
  TypeChange types = {};   // kPost: of the tensor, if types are followed
  int64_t virtual_ns = 0;  // the rank's virtual clock
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
