// All panels, one row each, in the order of the View menu.
#include "viz/panels/attention_panel.h"
#include "viz/panels/comm_panel.h"
#include "viz/panels/curves_panel.h"
#include "viz/panels/details_panel.h"
#include "viz/panels/diff_panel.h"
#include "viz/panels/expert_panel.h"
#include "viz/panels/log_panel.h"
#include "viz/panels/memory_panel.h"
#include "viz/panels/mesh_panel.h"
#include "viz/panels/panel.h"
#include "viz/panels/parity_panel.h"
#include "viz/panels/path_panel.h"
#include "viz/panels/precision_panel.h"
#include "viz/panels/stage/stage_panel.h"
#include "viz/panels/stepper_panel.h"
#include "viz/panels/timeline/timeline_panel.h"
#include "viz/panels/traffic_panel.h"
#include "viz/panels/what_if_panel.h"
#include "viz/panels/zero_panel.h"

namespace ranklab::viz {
namespace {

template <typename T>
std::unique_ptr<Panel> make() {
  return std::make_unique<T>();
}

const PanelRow kPanels[] = {
    {"timeline", "Timeline", "work, bubbles and communication of every rank over time", make<TimelinePanel>},
    {"stage", "Stage", "ranks as rooms: who works, who waits for whom, what travels, what is held", make<StagePanel>},
    {"details", "Selection", "every field of the chosen event; totals of the selected time", make<DetailsPanel>},
    {"stepper", "Stepper", "pause a live run, step event by event, breakpoints", make<StepperPanel>},
    {"what_if", "Schedules", "pipeline schedules side by side for your own p, m and costs", make<WhatIfPanel>},
    {"path", "Critical path", "the longest chain of work, and what would shorten it", make<PathPanel>},
    {"curves", "Curves", "loss, step time, tokens/s ... over steps", make<CurvesPanel>},
    {"traffic", "Traffic", "who sends how much to whom", make<TrafficPanel>},
    {"attention", "Attention", "which queries and keys each context-parallel rank has, and how even that is",
     make<AttentionPanel>},
    {"experts", "Experts", "tokens per expert, balance over steps, the router's bias", make<ExpertPanel>},
    {"comm", "Calls", "every collective and message as its members saw it", make<CommPanel>},
    {"memory", "Memory", "bytes by category over time, and peaks", make<MemoryPanel>},
    {"zero", "ZeRO shards", "who holds which part of parameters, gradients and optimizer states", make<ZeroPanel>},
    {"precision", "Precision", "underflow, saturation and scales of quantized tensors", make<PrecisionPanel>},
    {"mesh", "Mesh", "ranks, groups, a metric per rank", make<MeshPanel>},
    {"diff", "Diff", "this trace beside a second one", make<DiffPanel>},
    {"parity", "Parity", "the first tensor that differs from the reference's, all tensors on all ranks",
     make<ParityPanel>},
    {"log", "Log", "messages", make<LogPanel>},
};

}  // namespace

std::span<const PanelRow> panel_rows() { return kPanels; }

const PanelRow* find_panel(const std::string& id) {
  for (const PanelRow& row : kPanels)
    if (row.id == id) return &row;
  return nullptr;
}

}  // namespace ranklab::viz
