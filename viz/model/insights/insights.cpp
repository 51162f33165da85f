#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "viz/model/insights/insight.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

constexpr std::array<InsightRule, 8> kRules = {stage_balance,  pipeline_fill, exposed_communication, attention_balance,
                                               expert_balance, straggler,     launch_bound,          recomputation};

}  // namespace

std::vector<Insight> find_insights(const TraceStore& store, const Window& window, size_t most) {
  const InsightInput input{store, window, find_bubbles(store, window)};
  std::vector<Insight> found;
  if (input.bubbles.all.total_ns <= 0) return found;
  for (const InsightRule rule : kRules) {
    if (std::optional<Insight> one = rule(input)) found.push_back(std::move(*one));
  }
  std::stable_sort(found.begin(), found.end(), [](const Insight& a, const Insight& b) { return a.share > b.share; });
  if (found.size() > most) found.resize(most);
  return found;
}

std::string insights_text(const std::vector<Insight>& insights) {
  std::string out;
  for (const Insight& one : insights)
    out +=
        strprintf("  %5s  %s\n         %s\n", format_percent(one.share).c_str(), one.text.c_str(), one.advice.c_str());
  return out;
}

}  // namespace ranklab::viz
