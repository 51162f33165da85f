// The content of a report on a run: the tables of viz/model for the shown step, and a few numbers of the whole run by
// which runs are compared. Cost: that of the tables. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/insights/insight.h"
#include "viz/model/run/run_files.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/expert_load.h"
#include "viz/model/tables/memory_table.h"
#include "viz/model/tables/mesh_table.h"
#include "viz/model/tables/precision_table.h"
#include "viz/model/tables/traffic_text.h"
#include "viz/model/tables/zero_table.h"

namespace ranklab::viz {

// Facts of the shown step; memory, experts and precision are those of all traced steps.
struct StepFacts {
  Window window;
  BubbleReport bubbles;
  std::vector<Insight> insights;
  MeshTable mesh;
  TrafficMatrix traffic;
  std::vector<PurposeTraffic> purposes;
  std::vector<RankMemory> memory;
  ZeroTable zero;
  ExpertTable experts;
  PrecisionTable precision;
};

// A number by which runs are compared.
struct GlanceNumber {
  std::string name;   // "loss of the last step"
  std::string unit;   // "ms", "bytes", "share", "tokens/s", ""
  double value = 0;   // NaN: the run did not record it
  std::string about;  // how it is computed
};

struct RunFacts {
  RunFiles files;
  std::optional<StepFacts> step;  // for runs with a trace
  std::vector<GlanceNumber> glance;
};

RunFacts run_facts(const std::string& path);
// The second step, if there are several, because the first one includes warm-up. Without steps, the whole trace.
Window shown_window(const TraceStore& store);
std::string glance_text(const GlanceNumber& number);  // "0.41 ms"; "-" if the run did not record it

}  // namespace ranklab::viz
