// What each rank holds of the parameters, gradients and optimizer states that data-parallel ranks shard (ZeRO), at any
// time of a step: the buckets of each rank and the history of their states, from the events of core/trace/zero_event.h;
// and, from the same numbers, what it would hold in each ZeRO stage. Cost: O(events of the step). Thread rule: pure.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/zero_event.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// What a rank holds of a bucket's parameters, and of its gradients.
enum class HeldParameters { kWhole, kShard, kGathering, kGathered };
enum class HeldGradients { kNone, kPartial, kReduced, kReducedShard };

// One rank's share of a bucket.
struct ZeroCell {
  bool present = false;
  int shard = 0;                                            // index of its shard
  std::vector<std::pair<int64_t, ZeroState>> history = {};  // by time
};

struct ZeroBucketRow {
  std::string label;
  int64_t elements = 0, padding = 0;                               // padding included in elements
  int shards = 1;                                                  // 1: not sharded
  int64_t element_bytes = 4, grad_bytes = 4, optimizer_bytes = 8;  // per element
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
  std::vector<ZeroBucketRow> rows;  // in model order, for all pipeline ranks

  bool empty() const { return rows.empty(); }
  int64_t elements(size_t rank) const;  // parameters in the rank's part of the model
  // The bytes held at a time; a gathered unit counts in full as parameters.
  ZeroBytes bytes_at(size_t rank, int64_t time_ns) const;
  // What the run would hold in ZeRO stage `stage`, at the update, with gradients reduced.
  ZeroBytes bytes_of_stage(size_t rank, int stage) const;
};
// The table of one step: the first one from `step` on that has any buckets.
ZeroTable zero_table(const TraceStore& store, int step);

std::string zero_text(const TraceStore& store, const ZeroTable& table);

}  // namespace ranklab::viz
