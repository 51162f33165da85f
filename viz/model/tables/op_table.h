// Statistics per operation name: count, duration, bytes, and the time not hidden by compute. Cost: O(n). Thread rule:
// pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct OpTotal {
  int64_t count = 0;
  int64_t total_ns = 0;
  double mean_ns() const { return count > 0 ? static_cast<double>(total_ns) / static_cast<double>(count) : 0; }
};

struct OpRow {
  std::string name;  // "F", "all_reduce tp"
  EventKind kind = EventKind::kCompute;
  OpTotal time;
  // For calls: sums over ranks.
  int64_t logical_bytes = 0;
  int64_t algorithm_bytes = 0;
  int64_t wire_bytes = 0;
  int64_t exposed_ns = 0;
  int64_t peer_wait_ns = 0;
};

// "F", "all_reduce tp"
std::string op_name(const RankTrace& trace, const Event& event);
// Shortens a name for tables to at most 32 bytes, in the middle; names of other programs' kernels can be long.
std::string short_name(const std::string& op_name);
// Sorted by total, longest first, with phases last. exposed_ns: on the virtual clock as recorded, on the wall clock the
// time outside compute that a call covers, as in find_bubbles().
std::vector<OpRow> op_table(const TraceStore& store, const Window& window);
// The fraction of the time on links that compute hides (as HTA defines it); nothing if there is no communication.
std::optional<double> overlap(const std::vector<OpRow>& ops);

}  // namespace ranklab::viz
