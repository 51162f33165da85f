// A position in a trace as one line of text for sharing: `step=12,t=3.4ms,sel=r3/B7`. Any part may be missing. Times
// are in ns, us, ms or s (in a drawn schedule, a bare number of units), counted from the start of the trace, or from
// the start of the step if one is given. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct DeepLink {
  std::optional<int> step;
  std::optional<int64_t> time_ns;
  std::string selection;  // "r3/B7"; "" for none

  bool operator==(const DeepLink&) const = default;
};

// Throws kInvalidArgument naming the invalid part. unit_ns: TraceStore::unit_ns().
DeepLink parse_deep_link(std::string_view text, int64_t unit_ns = 0);
// parse_deep_link() converts the text back to the same link.
std::string to_text(const DeepLink& link, int64_t unit_ns = 0);

// A link resolved for a trace.
struct Goto {
  int step = -1;
  int64_t time_ns = 0;
  std::optional<EventRef> event;
};
// Throws kInvalidArgument if the trace has no such step or event, listing the existing ones.
Goto resolve(const TraceStore& store, const DeepLink& link);
DeepLink link_to(const TraceStore& store, int64_t time_ns, std::optional<EventRef> event);

}  // namespace ranklab::viz
