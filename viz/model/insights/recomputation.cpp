#include <algorithm>

#include "core/base/text.h"
#include "viz/model/insights/insight.h"

namespace ranklab::viz {
// Time for layers whose forward runs again in backward.
std::optional<Insight> recomputation(const InsightInput& in) {
  constexpr double kShare = 0.12;
  int64_t again_ns = 0;
  std::optional<EventRef> event;
  for (size_t r = 0; r < in.store.traces().size(); ++r) {
    const RankTrace& trace = in.store.trace(r);
    for (uint32_t i = 0; i < trace.events.size(); ++i) {
      const Event& one = trace.events[i];
      if (one.kind != EventKind::kModule || !in.window.has(one, in.store.clock())) continue;
      const std::string& name = trace.names[one.name];
      // Matches "layers.3 recompute", but not its children.
      if (!name.ends_with(" recompute") || !name.starts_with("layers.") ||
          name.find('.', std::string("layers.").size()) != std::string::npos)
        continue;
      again_ns += end_ns(one, in.store.clock()) - begin_ns(one, in.store.clock());
      if (!event) event = EventRef{r, i};
    }
  }
  const double share = static_cast<double>(again_ns) / static_cast<double>(in.bubbles.all.total_ns);
  if (share < kShare) return {};
  Insight out{.rule = "recomputation", .share = share, .text = {}, .advice = {}, .event = event};
  out.text = "backward recomputes the forward of its layers";
  out.advice =
      "where memory allows, try --recompute-granularity selective, or recompute fewer layers "
      "(--recompute-method block --recompute-num-layers)";
  return out;
}

}  // namespace ranklab::viz
