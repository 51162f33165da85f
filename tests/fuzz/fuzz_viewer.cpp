// Any bytes as the file a viewer is given: what is readable of it is loaded, and every table and picture is made of it.
// The bytes are also used as a link and a selection that a user pasted.
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "tests/fuzz/scratch_folder.h"
#include "viz/html/stage_page.h"
#include "viz/model/critical_path.h"
#include "viz/model/curves.h"
#include "viz/model/level_of_detail.h"
#include "viz/model/stage/script.h"
#include "viz/model/store/deep_link.h"
#include "viz/model/store/event_details.h"
#include "viz/model/store/load_trace.h"
#include "viz/model/store/selection.h"
#include "viz/model/svg.h"
#include "viz/model/tables/attention_table.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/comm_table.h"
#include "viz/model/tables/expert_load.h"
#include "viz/model/tables/memory_table.h"
#include "viz/model/tables/mesh_table.h"
#include "viz/model/tables/mismatch_view.h"
#include "viz/model/tables/op_table.h"
#include "viz/model/tables/precision_table.h"
#include "viz/model/tables/requantize.h"
#include "viz/model/tables/traffic_text.h"
#include "viz/model/tables/type_table.h"
#include "viz/model/text_timeline.h"
#include "viz/model/trace_diff.h"
#include "viz/model/what_if.h"

using namespace ranklab;
using namespace ranklab::viz;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename Work>
void no_internal_error(Work work) {
  try {
    work();
  } catch (const Error& error) {
    require(error.kind() != ErrorKind::kInternal);
  }
}

void look_at_stage(const TraceStore& store, const StageScript& script) {
  std::vector<uint32_t> flows;
  for (int part = 0; part <= 4; ++part) {
    const int64_t time = script.window.range.begin_ns + script.window.range.length_ns() / 4 * part;
    flows_at(script, time, script.linger_ns(), flows);
    for (const uint32_t flow : flows) require(script.flows[flow].width >= 0 && script.flows[flow].width <= 1);
    for (const StageRoom& room : script.rooms) {
      module_at(room, time);
      memory_at(room, time);
    }
    lines_at(script, time, 5);
    next_mark(script.layers, time, 0);
  }
  if (script.empty()) return;
  // Whatever the texts are, the page has its own two scripts and no other.
  const std::string page = stage_page(store, script);
  const size_t first = page.find("<script"), second = page.find("<script", first + 1);
  require(second != std::string::npos && page.find("<script", second + 1) == std::string::npos);
}

void look_at(const TraceStore& store, const Window& window) {
  const BubbleReport report = find_bubbles(store, window);
  for (const RankBubbles& rank : report.ranks)
    require(rank.time.busy_ns >= 0 && rank.time.busy_ns <= rank.time.total_ns);
  idle_strip(report, window.range, 100);
  const CriticalPath path = find_critical_path(store, window);
  require(store.empty() || window.range.empty() || path.length_ns() == window.range.length_ns());
  const TrafficMatrix traffic = traffic_matrix(store, window);
  require(traffic.total().messages >= traffic_matrix(store, window, {.purpose = Purpose::kDispatch}).total().messages);
  matrix_text(traffic, TrafficLayer::kWire);
  flows_text(traffic_flows(store, window, {.gpus_per_node = 2}), 2);
  const ExpertTable experts = expert_table(store, window);
  for (const LayerLoad& load : experts.loads)
    require(std::isfinite(load.measures.cv) && load.measures.max <= load.measures.sum);
  expert_text(experts);
  for (const int layer : experts.layers) load_history(experts, layer);
  const AttentionTable attention = attention_table(store, window);
  for (const AttentionGroup& group : attention.groups) {
    for (const AttentionUse& use : group.uses) {
      require(use.tiles.size() == group.members.size() && std::isfinite(use.imbalance()));
      require(use.imbalance() <= static_cast<double>(group.members.size()) * (1 + 1e-9));
      balance_words(store, group, use);
    }
    require(group.at(window.range.begin_ns) < group.uses.size());
  }
  attention_text(store, attention);
  const PrecisionTable precision = precision_table(store);
  for (const TensorSeries& tensor : precision.tensors) {
    for (const TensorSample& sample : tensor.samples) {
      require(sample.underflow_share() <= 1 && sample.saturated_share() <= 1);
      for (const FormatRange& format : format_ranges())
        require(requantize(sample, format, ScaleChoice::kAmax).underflow_share <= 1 + 1e-9);
    }
  }
  precision_text(precision, window.step);
  const std::vector<CommCall> calls = comm_calls(store, window);
  std::vector<uint32_t> order;
  sort_calls(calls, CommColumn::kBusbw, false, order);
  memory_table(store, window);
  look_at_stage(store, stage_script(store, window));
  op_table(store, window);
  type_text(type_table(store, window));
  for (size_t metric = 0; metric < static_cast<size_t>(RankMetric::kCount); ++metric)
    rank_metric(store, window, static_cast<RankMetric>(metric));
}

void look_at_rows(const TraceStore& store) {
  std::vector<LodBlock> blocks;
  for (size_t r = 0; r < store.ranks().size(); ++r) {
    for (size_t row = 0; row < store.rank(r).rows.size(); ++row) {
      level_of_detail(store.rank(r).rows[row], store.range(), 300, blocks);
      store.at(r, row, store.range().begin_ns);
    }
    const size_t events = store.trace(r).events.size();
    for (size_t e = 0; e < events; e += 1 + events / 8) {
      event_details(store, {r, e});
      if (const auto place = store.place_of({r, e})) require(store.next_on_row({r, e}) != EventRef{r, e});
      require(find_selection(store, selection_text(store, {r, e}), store.event({r, e}).step) == EventRef{r, e});
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ScratchFolder kFolder("fuzz_viewer");
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string path = kFolder.write("trace.json", bytes);
  const std::string_view line = bytes.substr(0, std::min<size_t>(bytes.find('\n'), 200));
  no_internal_error([&] {
    const DeepLink link = parse_deep_link(line, 1'000'000);
    require(parse_deep_link(to_text(link, 1'000'000), 1'000'000) == link);
  });
  no_internal_error([&] {
    TraceStore store = load_trace(path);
    no_internal_error([&] { find_selection(store, line); });
    look_at(store, store.whole());
    if (!store.steps().empty()) look_at(store, *store.step_window(store.steps().front().step));
    look_at_rows(store);
    curves(store);
    mesh_table(store);
    mismatch_views(store);
    if (store.ranks().size() < 64) traffic_by_step(store, 0, 64);
    if (store.clock() == TraceClock::kVirtual && store.num_events() < 200) what_if_table(store);
    require(diff_traces(store, store).worst_share() == 0);
    text_timeline(store);
    timeline_svg(store);
    search_events(store, "f");
    const TraceClock other = store.clock() == TraceClock::kVirtual ? TraceClock::kWall : TraceClock::kVirtual;
    if (store.has_clock(other)) {
      store.set_clock(other);
      look_at(store, store.whole());
    }
    if (!store.traces().empty()) {  // a copy, since it goes into the store itself
      const RankTrace more = store.trace(0);
      store.append(more);
      look_at_rows(store);
    }
  });
  return 0;
}
