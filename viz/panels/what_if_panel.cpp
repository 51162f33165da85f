#include "viz/panels/what_if_panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/simulate.h"
#include "core/pipeline/verify.h"
#include "viz/model/store/run_schedule.h"
#include "viz/model/store/schedule_store.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

struct CostPreset {
  const char* name;
  int p, m;  // 0: unchanged
  double f, b, w, c;
};
// Profiled times in milliseconds: arXiv 2401.10241, table 9.
constexpr CostPreset kPresets[] = {
    {"equal: F = B = W = 1", 0, 0, 1, 1, 1, 0},
    {"1F1B's figure: p 8, m 32, F 1, BW 2", 8, 32, 1, 1, 1, 0},
    {"1.5B on 8 ranks, m 24 (Qi et al., ms)", 8, 24, 18.522, 18.086, 9.337, 0.601},
    {"14.6B on 16 ranks, m 48 (Qi et al., ms)", 16, 48, 11.347, 11.248, 8.132, 0.377},
};

// A number to drag or, after a double click, to type, to the right of its name.
bool field(const char* words, int& value, int low, int high, const char* hint) {
  label(words);
  ImGui::SetNextItemWidth(scaled(46));
  const bool changed =
      ImGui::DragInt((std::string("##") + words).c_str(), &value, 0.1f, low, high, "%d", ImGuiSliderFlags_AlwaysClamp);
  tooltip(hint);
  same_line_if_fits(scaled(150));
  return changed;
}

bool field(const char* words, double& value, double low, double high, const char* hint) {
  label(words);
  ImGui::SetNextItemWidth(scaled(58));
  const bool changed = ImGui::DragScalar((std::string("##") + words).c_str(), ImGuiDataType_Double, &value, 0.02f, &low,
                                         &high, "%.2f", ImGuiSliderFlags_AlwaysClamp);
  tooltip(hint);
  same_line_if_fits(scaled(120));
  return changed;
}

constexpr int kMostRanks = 32, kMostMicrobatches = 128, kMostChunks = 8;

bool lets_choose_chunks(const std::string& name) { return find_schedule_kind(name).chunks == 0; }
bool has_groups(const std::string& name, const ScheduleRequest& request) {
  return find_schedule_kind(name).groups && request.num_chunks > 1;
}

WhatIfResult evaluate(const std::string& name, ScheduleRequest request, const ScheduleCosts& costs) {
  WhatIfResult result;
  result.name = name;
  try {
    if (!lets_choose_chunks(name)) request.num_chunks = 1;
    if (!has_groups(name, request)) request.group_size = 0;
    const Schedule schedule = make_schedule(name, request, costs);
    const PipelineTimeline line = simulate(schedule, costs);
    const ScheduleProof proof = verify_schedule(schedule, costs.weight_grad_memory);
    result.makespan = line.makespan;
    result.bubble_of_total = line.bubble_of_total();
    result.bubble_of_ideal = line.bubble_of_ideal();
    for (const StageMemory& memory : proof.memory)
      result.peak_activations = std::max(result.peak_activations, memory.peak_activations);
    result.messages = proof.messages;
    result.stages = schedule.chain_length;
    result.store = schedule_store(schedule, line, costs.c);
    result.bubbles = find_bubbles(result.store, result.store.whole());
  } catch (const Error& error) {
    result.problem = error.what();
  }
  return result;
}

}  // namespace

WhatIfPanel::WhatIfPanel() = default;

// Starts with the ranks, microbatches and costs of the run that is shown.
void WhatIfPanel::follow_run(Workspace& workspace) {
  if (followed_ == workspace.loaded() || !workspace.has_whole_step()) return;
  followed_ = workspace.loaded();
  of_run_.clear();
  const std::optional<RunSchedule> run = run_schedule(workspace.store());
  if (!run || run->request.num_ranks > kMostRanks || run->request.num_microbatches > kMostMicrobatches) return;
  inputs_.request = run->request;
  inputs_.costs = run->costs;
  of_run_ = "1 is " + format_time(workspace.store(), run->forward_ns) + ", a forward of this run";
  if (run->request.num_ranks == 1) of_run_ += ", which has no pipeline: drag ranks to try one";
  stale_ = true;
}

void WhatIfPanel::draw(Workspace& workspace) {
  follow_run(workspace);
  fields();
  choose_schedules();
  if (!of_run_.empty()) {
    same_line_if_fits(ImGui::CalcTextSize(of_run_.c_str()).x);
    dim_text(of_run_);
  }
  run_status();
  if (stale_) compute();
  int64_t longest = 1;
  size_t rows = 0;
  for (const WhatIfResult& one : results_) {
    longest = std::max(longest, one.store.range().end_ns);
    rows += one.store.ranks().size();
  }
  if (!ImGui::BeginChild("results")) return ImGui::EndChild();
  const float strips = static_cast<float>(std::max<size_t>(rows, 1));
  const float room = (ImGui::GetContentRegionAvail().y - headings_) / strips - 1;
  const float row_height = std::floor(std::clamp(room, scaled(7), scaled(22)));
  for (size_t i = 0; i < results_.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    result(workspace, results_[i], strips_[i], {0, longest}, row_height);
    ImGui::PopID();
  }
  headings_ = ImGui::GetCursorPosY() - strips * (row_height + 1);  // texts wrap in a narrow window
  ImGui::EndChild();
}

void WhatIfPanel::fields() {
  ScheduleRequest& r = inputs_.request;
  ScheduleCosts& c = inputs_.costs;
  bool changed = field("ranks", r.num_ranks, 1, kMostRanks, "p, pipeline ranks: drag, or double-click to type");
  changed |= field("microbatches", r.num_microbatches, 1, kMostMicrobatches, "m, microbatches of a step");
  changed |= field("stages a rank", r.num_chunks, 1, kMostChunks, "v, for interleaved-1f1b and looped-bfs");
  changed |=
      field("group", r.group_size, 0, kMostMicrobatches,
            "microbatches that pass one stage of a rank before its next one begins, for interleaved-1f1b; 0: the "
            "fewest possible");
  const double largest = std::max({4.0, c.f * 2, c.b * 2, c.w * 2});
  changed |= field("F", c.f, 0.05, largest, "time of a microbatch's forward on a rank");
  changed |= field("B", c.b, 0.05, largest, "time of its input gradient; BW = B + W");
  changed |= field("W", c.w, 0.0, largest, "time of its weight gradient");
  changed |= field("message", c.c, 0.0, largest / 4, "time of a message between ranks");
  if (ImGui::Button("presets")) ImGui::OpenPopup("presets");
  if (begin_popup_at_item("presets")) {
    for (const CostPreset& preset : kPresets) {
      if (!ImGui::Selectable(preset.name)) continue;
      if (preset.p > 0) r.num_ranks = preset.p;
      if (preset.m > 0) r.num_microbatches = preset.m;
      c.f = preset.f;
      c.b = preset.b;
      c.w = preset.w;
      c.c = preset.c;
      changed = true;
    }
    ImGui::EndPopup();
  }
  if (changed) of_run_.clear();
  stale_ |= changed;
}

void WhatIfPanel::choose_schedules() {
  ImGui::SameLine();
  if (ImGui::Button("schedules ...")) ImGui::OpenPopup("schedules");
  if (!begin_popup_at_item("schedules")) return;
  for (const ScheduleKind& kind : schedule_kinds()) {
    const std::string name(kind.name);
    const auto at = std::find(inputs_.names.begin(), inputs_.names.end(), name);
    bool on = at != inputs_.names.end();
    if (!ImGui::Checkbox(name.c_str(), &on)) continue;
    if (on)
      inputs_.names.push_back(name);
    else
      inputs_.names.erase(at);
    stale_ = true;
  }
  ImGui::EndPopup();
}

void WhatIfPanel::compute() {
  stale_ = false;
  results_.clear();
  for (const std::string& name : inputs_.names) results_.push_back(evaluate(name, inputs_.request, inputs_.costs));
  strips_.resize(results_.size());
}

// One layer per stage and one sequence per microbatch, so that it is small enough for any machine.
std::vector<std::string> WhatIfPanel::train_arguments(const WhatIfResult& result) const {
  const ScheduleRequest& r = inputs_.request;
  const std::string p = std::to_string(r.num_ranks), m = std::to_string(r.num_microbatches);
  std::vector<std::string> words = {"train", "--world-size", p, "--pp", p, "--num-layers"};
  words.insert(words.end(), {std::to_string(std::max(result.stages, 4)), "--mbs", "1", "--gbs", m});
  words.insert(words.end(), {"--num-microbatches", m, "--pipeline-schedule", result.name});
  if (lets_choose_chunks(result.name)) words.insert(words.end(), {"--vpp", std::to_string(r.num_chunks)});
  if (has_groups(result.name, r) && r.group_size > 0)
    words.insert(words.end(), {"--microbatch-group-size-per-virtual-pipeline-stage", std::to_string(r.group_size)});
  words.insert(words.end(), {"--train-iters", "3"});
  return words;
}

std::string WhatIfPanel::train_command(const WhatIfResult& result) const {
  return "./ranklab " + join(train_arguments(result), " ");
}

void WhatIfPanel::start(Workspace& workspace, const WhatIfResult& result) {
  std::vector<std::string> arguments = train_arguments(result);
  arguments.insert(arguments.end(), {"--mock-data", "--eval-interval", "0", "--sample-tokens", "0"});
  const ScheduleRequest& r = inputs_.request;
  std::string name = result.name + strprintf(", p %d, m %d", r.num_ranks, r.num_microbatches);
  if (lets_choose_chunks(result.name)) name += strprintf(", v %d", r.num_chunks);
  run_.start(workspace, program_.empty() ? program_path().string() : program_, std::move(arguments), name);
}

// A separate line, which stays when the run's schedule is no longer shown.
void WhatIfPanel::run_status() {
  const std::string status = run_.status();
  if (status.empty()) return;
  if (ImGui::SmallButton(run_.running() ? "cancel" : "x")) run_.running() ? run_.cancel() : run_.forget();
  ImGui::SameLine();
  ImGui::PushTextWrapPos(0);
  colored_text(run_.running() ? theme::kCursor : run_.failed() ? theme::kBad : theme::kGood, status);
  ImGui::PopTextWrapPos();
}

void WhatIfPanel::run_buttons(Workspace& workspace, const WhatIfResult& result) {
  const bool live = workspace.has_live_run();
  ImGui::BeginDisabled(live || run_.running());
  if (ImGui::SmallButton("run it")) start(workspace, result);
  ImGui::EndDisabled();
  tooltip(live             ? "not during a live run: its trace would replace the live one"
          : run_.running() ? "one run at a time"
                           : "trains three steps with it on generated sentences, in a process of its own, and opens "
                             "the trace; its files go when the window closes");
  ImGui::SameLine();
  if (ImGui::SmallButton("copy command")) {
    ImGui::SetClipboardText(train_command(result).c_str());
    workspace.log(LogLine::Level::kInfo, "copied: " + train_command(result));
  }
  tooltip(train_command(result).c_str());
}

void WhatIfPanel::result(Workspace& workspace, WhatIfResult& result, GanttStrip& strip, TimeRange scale,
                         float row_height) {
  ImGui::AlignTextToFramePadding();
  colored_text(theme::kAccent, result.name);
  ImGui::SameLine(scaled(130));
  if (!result.problem.empty()) {
    ImGui::PushTextWrapPos(0);
    colored_text(theme::kBad, result.problem);
    ImGui::PopTextWrapPos();
    return;
  }
  text(strprintf("%g", result.makespan));
  tooltip("makespan, in the unit of the costs: from a rank's first start to its last end, the largest of the ranks");
  const std::string bubble = "bubble " + format_percent(result.bubble_of_total) + " of total, " +
                             format_percent(result.bubble_of_ideal) + " of ideal";
  ImGui::SameLine(scaled(196));
  if (ImGui::CalcTextSize(bubble.c_str()).x > ImGui::GetContentRegionAvail().x) ImGui::NewLine();
  text(bubble);
  tooltip("of total: 1 - m (F+B+W) / makespan; of ideal: makespan / (m (F+B+W)) - 1");
  same_line_if_fits(scaled(236));
  if (ImGui::SmallButton("open")) {
    TraceStore copy = result.store;
    workspace.load(std::move(copy));
    workspace.requests.show_panel = "timeline";
  }
  tooltip("in the timeline and every other panel");
  ImGui::SameLine();
  run_buttons(workspace, result);
  const std::string memory = strprintf("%.4g activations at peak, %lld messages", result.peak_activations,
                                       static_cast<long long>(result.messages));
  same_line_if_fits(ImGui::CalcTextSize(memory.c_str()).x);
  dim_text(memory);
  tooltip("what the worst rank keeps, in microbatches of a whole rank");
  strip.draw(result.store, result.bubbles, scale, row_height);
}

}  // namespace ranklab::viz
