#include <algorithm>
#include <map>

#include "core/base/kernel_bound.h"
#include "core/base/text.h"
#include "viz/model/insights/insight.h"

namespace ranklab::viz {
// Kernels so small that launching them takes most of their time. Needs --trace-level kernel.
std::optional<Insight> launch_bound(const InsightInput& in) {
  constexpr double kShare = 0.3;
  int64_t launch_ns = 0, kernels = 0, longest_ns = 0;
  std::optional<EventRef> event;
  for (size_t r = 0; r < in.store.traces().size(); ++r) {
    const std::vector<Event>& events = in.store.trace(r).events;
    for (uint32_t i = 0; i < events.size(); ++i) {
      const Event& one = events[i];
      if (one.kind != EventKind::kKernel || one.tag != static_cast<int>(KernelBound::kLaunch)) continue;
      if (!in.window.has(one, in.store.clock())) continue;
      const int64_t ns = end_ns(one, in.store.clock()) - begin_ns(one, in.store.clock());
      launch_ns += ns;
      ++kernels;
      if (ns <= longest_ns) continue;
      longest_ns = ns;
      event = EventRef{r, i};
    }
  }
  const double share = static_cast<double>(launch_ns) / static_cast<double>(in.bubbles.all.total_ns);
  if (share < kShare) return {};
  Insight out{.rule = "launch bound", .share = share, .text = {}, .advice = {}, .event = event};
  out.text = strprintf("%lld kernels are so small that their launch takes most of their time",
                       static_cast<long long>(kernels));
  out.advice = "try larger microbatches (--micro-batch-size), fewer tensor-parallel ranks (--tp), or a larger model";
  return out;
}

}  // namespace ranklab::viz
