// The largest causes of lost time in a trace, in words: what costs how much of the time of all ranks, where to look,
// and a command to try. To add a rule, add a file and a row in insights.cpp. Cost: O(events). Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"
#include "viz/model/tables/bubbles.h"

namespace ranklab::viz {

struct Insight {
  std::string rule;    // "stage balance"
  double share = 0;    // the approximate share of the time of all ranks that it costs
  std::string text;    // "stage 3 works 1.6 times the mean of the stages, which wait for it: it has the head"
  std::string advice;  // "try --pipeline-layout 3,3,1,1"
  std::optional<EventRef> event = {};  // the event to look at
};

// The input of the rules.
struct InsightInput {
  const TraceStore& store;
  Window window;
  BubbleReport bubbles;
};
using InsightRule = std::optional<Insight> (*)(const InsightInput&);

// The largest first, at most `most`; empty if nothing costs enough to be worth a change.
std::vector<Insight> find_insights(const TraceStore& store, const Window& window, size_t most = 3);
// One line per insight; "" if there is none.
std::string insights_text(const std::vector<Insight>& insights);

// The rules, one file each. A rule returns nothing below its threshold.
std::optional<Insight> stage_balance(const InsightInput& in);
std::optional<Insight> pipeline_fill(const InsightInput& in);
std::optional<Insight> exposed_communication(const InsightInput& in);
std::optional<Insight> attention_balance(const InsightInput& in);
std::optional<Insight> expert_balance(const InsightInput& in);
std::optional<Insight> straggler(const InsightInput& in);
std::optional<Insight> launch_bound(const InsightInput& in);
std::optional<Insight> recomputation(const InsightInput& in);

}  // namespace ranklab::viz
