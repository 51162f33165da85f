// Sections from the trace about one step: what costs most in words, the ranks, its timeline, and the traffic between
// ranks.
#include <algorithm>

#include "core/base/text.h"
#include "viz/html/report/html_text.h"
#include "viz/html/report/pictures.h"
#include "viz/html/report/sections.h"
#include "viz/model/store/time_text.h"
#include "viz/model/svg.h"
#include "viz/model/svg/markup.h"

namespace ranklab::viz {
namespace {

constexpr size_t kTimelineRanks = 16, kMatrixRanks = 32, kSmallMatrixRanks = 8, kSmallMatrices = 6;
constexpr size_t kTimelineBytes = 330'000;

std::string step_words(const TraceStore& store, const StepFacts& facts) {
  const std::string what = facts.window.step < 0 ? "The whole trace" : "Step " + std::to_string(facts.window.step);
  return what + ", " + format_time(store, facts.window.range.length_ns()) +
         (store.clock() == TraceClock::kVirtual ? " of virtual time" : " of wall time");
}

// The most detailed timeline that fits: first narrow blocks are joined, then ranks are left out. RETURNS: "" if not
// even one rank fits.
std::string fitting_timeline(const TraceStore& store, const StepFacts& facts, const SvgPlace& place, size_t bytes,
                             size_t& ranks) {
  constexpr float kCoarsest = 8;
  SvgOptions options{.range = facts.window.range, .width = 1130, .place = place};
  for (size_t most = kTimelineRanks;;) {
    options.ranks = telling_ranks(facts.mesh, most);
    ranks = options.ranks.size();
    std::string svg = timeline_svg(store, options);
    if (svg.size() <= bytes) return svg;
    if (options.least_pixels < kCoarsest) {
      options.least_pixels *= 2;
    } else if (ranks > 1) {
      most = ranks / 2;
    } else {
      return "";
    }
  }
}

// The idle time of all ranks by cause.
std::string causes_markup(const TraceStore& store, const StepFacts& facts) {
  HtmlTable table{.head = {"the ranks' time", "all ranks", "share"}};
  const TimeSplit& all = facts.bubbles.all;
  if (all.total_ns == 0) return "";
  const auto add = [&](const std::string& what, int64_t time) {
    table.rows.push_back({what, format_time(store, time), format_percent(share_of(time, all.total_ns))});
  };
  add("busy", all.busy_ns);
  for (size_t c = 0; c < kBubbleCauses; ++c)
    if (all.by_cause_ns[c] > 0) add(std::string(name(static_cast<BubbleCause>(c))), all.by_cause_ns[c]);
  return table_markup(table) +
         paragraph(
             "warm-up and drain: before a rank's first and after its last work; dependency: waiting for another "
             "rank's action; exposed comm: for a transfer that compute did not hide; straggler: in a collective, "
             "for a member that comes late.",
             "dim");
}

std::string flows_markup(const std::vector<TrafficFlow>& flows, bool nodes) {
  HtmlTable table{.head = {"what", "sends", "logical bytes", "sent by the algorithm", "on the wire"}};
  if (nodes) table.head.insert(table.head.end(), {"inside nodes", "between nodes"});
  const auto bytes = [](const TrafficCell& cell, TrafficLayer layer) {
    return bytes_text(static_cast<double>(cell.of(layer)));
  };
  for (const TrafficFlow& flow : flows) {
    const PurposeTraffic& row = flow.traffic;
    table.rows.push_back({flow.name(), std::to_string(row.all.messages), bytes(row.all, TrafficLayer::kLogical),
                          bytes(row.all, TrafficLayer::kAlgorithm), bytes(row.all, TrafficLayer::kWire)});
    if (!nodes) continue;
    table.rows.back().push_back(bytes(row.intra_node, TrafficLayer::kLogical));
    table.rows.back().push_back(bytes(row.inter_node, TrafficLayer::kLogical));
  }
  return table_markup(table);
}

std::string matrix_markup(const TrafficMatrix& matrix, const std::string& what, const std::string& id) {
  const double cell = matrix.size() <= 8 ? 56 : matrix.size() <= 16 ? 46 : 16;
  const std::string words = what + ": logical bytes that a row's rank sends to a column's";
  return figure(matrix_svg(matrix, TrafficLayer::kLogical, "", {.cell = cell, .place = {true, id, words}}), words);
}

std::string matrices_markup(const TraceStore& store, const StepFacts& facts, const std::vector<TrafficFlow>& flows,
                            const std::string& letter) {
  if (facts.traffic.size() > kMatrixRanks)
    return paragraph(
        strprintf("The matrix of %zu ranks does not fit here: ranklab viz shows it.", facts.traffic.size()), "dim");
  std::string out = matrix_markup(facts.traffic, "All of it", letter + "m");
  if (flows.size() < 2 || facts.traffic.size() > kSmallMatrixRanks) return out;
  std::string small;
  for (size_t i = 0; i < std::min(flows.size(), kSmallMatrices); ++i) {
    const TrafficFilter filter{.axis = flows[i].axis, .purpose = flows[i].traffic.purpose};
    small +=
        matrix_markup(traffic_matrix(store, facts.window, filter), flows[i].name(), letter + "m" + std::to_string(i));
  }
  return out + folded("a matrix for each", "<div class=\"grid wide\">" + small + "</div>");
}

}  // namespace

std::string insight_section(Runs runs) {
  return for_each_trace(runs, [](const TraceStore& store, const StepFacts& facts, const std::string&) {
    if (const std::string_view why = why_phases_only(store); !why.empty()) return absent(std::string(why));
    if (facts.insights.empty()) return paragraph("Nothing costs enough to be worth a change.");
    std::string out = "<ol class=\"insights\">\n";
    for (const Insight& one : facts.insights)
      out += "<li>" + as_markup(one.text) + " (" + as_markup(format_percent(one.share)) + " of all ranks' time)" +
             (one.advice.empty() ? "" : "<br><span class=\"dim\">" + as_markup(one.advice) + "</span>") + "</li>\n";
    return out + "</ol>\n";
  });
}

std::string layout_section(Runs runs) {
  return for_each_trace(runs, [](const TraceStore&, const StepFacts& facts, const std::string& letter) {
    const MeshTable& mesh = facts.mesh;
    std::string out = figure(
        mesh_svg(mesh, facts.bubbles, {true, letter + "l", "ranks and their coordinates"}),
        "Neighbours of the innermost axis are next to each other; the blue line is the share of the traced step in "
        "which a rank is busy.");
    if (mesh.ranks.size() > kDrawnTiles)
      out += paragraph(strprintf("The first %zu of %zu ranks.", kDrawnTiles, mesh.ranks.size()), "dim");
    return out;
  });
}

std::string timeline_section(Runs runs) {
  return for_each_trace(runs, [&](const TraceStore& store, const StepFacts& facts, const std::string& letter) {
    size_t ranks = 0;
    const std::string svg =
        fitting_timeline(store, facts, {true, letter + "t", "timeline of a step"}, kTimelineBytes / runs.size(), ranks);
    std::string caption =
        step_words(store, facts) + ". Hatched is idle; point at a block to see what it is or waits for.";
    if (ranks < store.ranks().size())
      caption += strprintf(" %zu of %zu ranks, which represent the others.", ranks, store.ranks().size());
    return (svg.empty() ? absent("The step has too many events to be drawn here: ranklab viz shows it.")
                        : figure(svg, caption)) +
           causes_markup(store, facts);
  });
}

std::string traffic_section(Runs runs) {
  return for_each_trace(runs, [](const TraceStore& store, const StepFacts& facts, const std::string& letter) {
    if (const std::string_view why = why_phases_only(store); !why.empty()) return absent(std::string(why));
    if (facts.traffic.total().messages == 0) return paragraph("No rank sends anything to another.");
    const auto flows = traffic_flows(store, facts.window, {.gpus_per_node = store.gpus_per_node()});
    return paragraph(step_words(store, facts) + ", by the axis of its calls.", "dim") +
           flows_markup(flows, store.gpus_per_node() > 0) + matrices_markup(store, facts, flows, letter);
  });
}

}  // namespace ranklab::viz
