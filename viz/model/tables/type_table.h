// How collectives change the types of tensors (partial, varying, replicated over each mesh axis), in a trace of a run
// whose types were tracked. Cost: O(events). Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/type_change.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct TypeRow {
  std::string op;    // "all_reduce tp"
  TypeChange types;  // "partial -> replicated over tp, varying over dp"
  int64_t count = 0, logical_bytes = 0;
};

// The most frequent first within an operation; empty if no types were tracked.
std::vector<TypeRow> type_table(const TraceStore& store, const Window& window);
std::string type_text(const std::vector<TypeRow>& rows);  // "" without rows

}  // namespace ranklab::viz
