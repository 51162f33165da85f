// `ranklab trace stats FILE --moe [--json]`: how evenly the experts of MoE layers were used, and the token traffic
// between ranks. Thread rule: one thread.
#pragma once
#include "viz/model/store/trace_store.h"

namespace ranklab {

// Prints the statistics. Throws kInvalidArgument for a trace without routing events.
void print_moe_stats(const viz::TraceStore& store, const viz::Window& window, bool json);

}  // namespace ranklab
