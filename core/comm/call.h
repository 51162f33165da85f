// One collective call as data: what a backend has to do, and what is compared between ranks before any byte moves.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <source_location>
#include <vector>

#include "core/base/vocabulary.h"

namespace ranklab {

// Where in the source a call was made. `file` is a literal, or a text that outlives the run.
struct CallSite {
  const char* file = "";
  uint32_t line = 0;

  constexpr CallSite() = default;
  constexpr CallSite(const std::source_location& site) : file(site.file_name()), line(site.line()) {}  // implicit
};

struct Call {
  Verb verb = Verb::kBarrier;
  at::Tensor input =
      {};  // contiguous; undefined for recv and barrier. all_reduce and broadcast work in place: input is output
  at::Tensor output = {};  // contiguous; undefined for send and barrier
  ReduceOp op = ReduceOp::kSum;
  bool reduce_in_fp32 = true;  // 16-bit inputs are summed in fp32 and rounded once at the end
  int peer = -1;               // group rank: root of broadcast, destination of send, source of recv
  int tag = 0;                 // of send and recv
  int lane = 0;                // the queue of a message, where messages match by order (Communicator::open_lanes)
  // Rows (dim 0) per group rank. all_to_all: sent to / received from each. reduce_scatter: rows each rank keeps
  // (input_splits). all_gather: rows each rank contributes (output_splits). Empty for the other verbs.
  std::vector<int64_t> input_splits = {};
  std::vector<int64_t> output_splits = {};
  CallSite site = {};
  int64_t posted_virtual_ns = 0;  // the rank's clock when it called; the backend returns the members' maximum
  // the bytes for which the observer charges; the members' maximum is returned, too (uneven all_to_all)
  int64_t posted_bytes = 0;
  bool blocking = false;  // the caller waits immediately, so a backend may run the call on the caller's thread
};

// Valid once a call is complete.
struct CallTimes {
  int64_t matched_virtual_ns = 0;  // the latest member's posted_virtual_ns (for a message: of its two ends)
  int64_t matched_bytes = 0;       // the largest posted_bytes
  int64_t posted_wall_ns = 0;
  int64_t matched_wall_ns = 0;
  int64_t done_wall_ns = 0;
  int64_t wire_bytes = 0;  // bytes that the backend sent from this rank
  int64_t sequence = -1;   // number of the call in its group (messages: per ordered pair and tag)
};

}  // namespace ranklab
