// Passes a communicator from an autograd function's forward to its backward. The communicator must outlive the graph,
// which lives within one step. Thread rule: the rank's thread.
#pragma once

#include "core/comm/communicator.h"
#include "core/nn/custom_function.h"

namespace ranklab {

inline void save_group(AutogradContext* ctx, Communicator& group) {
  ctx->saved_data["group"] = reinterpret_cast<int64_t>(&group);
}
inline Communicator& saved_group(AutogradContext* ctx) {
  return *reinterpret_cast<Communicator*>(ctx->saved_data["group"].toInt());
}

}  // namespace ranklab
