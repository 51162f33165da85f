// Every communication call as its members saw it: for each rank the times at which it posted, matched, got the first
// byte and was done; skew and bandwidth. algbw = logical bytes / time on the link, busbw = algbw x the factor of
// nccl-tests: all_reduce 2(n-1)/n; reduce_scatter, all_gather and all_to_all (n-1)/n; broadcast and messages 1. On the
// wall clock, posted is the begin of the event and the transfer is counted from the match. Cost: O(n log n). Thread
// rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct CommSide {
  EventRef event;
  int global_rank = 0;
  int64_t posted_ns = kNoTime;
  int64_t matched_ns = kNoTime;
  int64_t first_byte_ns = kNoTime;
  int64_t done_ns = kNoTime;
  int64_t exposed_ns = 0;
  int64_t peer_wait_ns = 0;
};

struct CommCall {
  Axis axis = Axis::kWorld;
  Verb verb = Verb::kBarrier;
  Purpose purpose = Purpose::kOther;
  DType dtype = DType::kOther;
  int64_t sequence = -1;
  int step = -1;
  std::vector<int> group;       // global ranks, in group order; for a message: sender, receiver
  std::vector<CommSide> sides;  // by rank; for a message: sender first
  std::vector<int> missing;     // members that are in the trace but have not made the call
  int64_t elements = 0;         // logical bytes / element size
  int64_t logical_bytes = 0;
  int64_t algorithm_bytes = 0;  // sum over all members
  int64_t wire_bytes = 0;
  int64_t begin_ns = 0;  // begin of the transfer
  int64_t end_ns = 0;
  int64_t skew_ns = 0;  // between the first and the last posting
  int last_rank = -1;   // the rank that posted last
  double algbw_gb_per_s = 0;
  double busbw_gb_per_s = 0;
  int64_t exposed_ns = 0;  // the largest of all members
  bool message() const { return verb == Verb::kSend || verb == Verb::kRecv; }
};

double busbw_factor(Verb verb, int group_size);

// Sorted by begin.
std::vector<CommCall> comm_calls(const TraceStore& store, const Window& window);

enum class CommColumn : uint8_t {
  kBegin,
  kStep,
  kAxis,
  kSequence,
  kVerb,
  kPurpose,
  kDtype,
  kElements,
  kLogical,
  kAlgorithm,
  kWire,
  kPosted,
  kDuration,
  kSkew,
  kAlgbw,
  kBusbw,
  kExposed,
  kCount
};
std::string_view name(CommColumn column);  // "busbw", for headings
std::string cell_text(const TraceStore& store, const CommCall& call, CommColumn column);
// `order` becomes the indices of `calls` sorted by a column; equal rows stay in order of begin.
void sort_calls(std::span<const CommCall> calls, CommColumn column, bool ascending, std::vector<uint32_t>& order);

}  // namespace ranklab::viz
