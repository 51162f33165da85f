// Who holds what of parameters, gradients and optimizer states that data-parallel ranks share out (ZeRO), at any moment
// of a step: the buckets of each rank and the history of their states, from the events of core/trace/zero_event.h; and
// what each stage would hold, from the same numbers. Cost: O(events of the step). Thread rule: pure.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/zero_event.h"
#include "viz/model/trace_store.h"

namespace ranklab::viz {

// What a rank has of a bucket's parameters, of its gradients.
enum class HeldParameters { kWhole, kShard, kGathering, kGathered };
enum class HeldGradients { kNone, kPartial, kReduced, kReducedShard };

// One rank's side of a bucket.
struct ZeroCell {
  bool present = false;
  int shard = 0;                                            // its part
  std::vector<std::pair<int64_t, ZeroState>> history = {};  // by time
};

struct ZeroBucketRow {
  std::string label;
  int64_t elements = 0, padding = 0;                               // padding included in elements
  int shards = 1;                                                  // 1: nobody shares it out
  int64_t element_bytes = 4, grad_bytes = 4, optimizer_bytes = 8;  // of an element
  bool experts = false;
  std::vector<ZeroCell> cells = {};  // [rank index]

  HeldParameters parameters_at(size_t rank, int64_t time_ns, int stage) const;
  HeldGradients gradients_at(size_t rank, int64_t time_ns, int stage) const;
};

// Bytes that a rank holds.
struct ZeroBytes {
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t together() const { return parameters + gradients + optimizer; }
};

struct ZeroTable {
  int step = -1;
  int stage = 0;
  std::vector<ZeroBucketRow> rows;  // in the order of the model, of all pipeline ranks

  bool empty() const { return rows.empty(); }
  int64_t elements(size_t rank) const;  // parameters of the rank's part of the model
  // Held at a moment; the whole of a gathered unit counts as parameters.
  ZeroBytes bytes_at(size_t rank, int64_t time_ns) const;
  // At the update, gradients reduced, if the run had been of that stage.
  ZeroBytes bytes_of_stage(size_t rank, int stage) const;
};
// Of one step (the first that has any from `step` on).
ZeroTable zero_table(const TraceStore& store, int step);

std::string zero_text(const TraceStore& store, const ZeroTable& table);

}  // namespace ranklab::viz
