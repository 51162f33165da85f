#include "viz/panels/stage/stage_panel.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

// With more rows, each would be too thin.
constexpr size_t kMostRows = 24;

std::vector<bool> shown_rooms(Workspace& workspace, const StageScript& script) {
  std::vector<bool> shown;
  for (const StageRoom& room : script.rooms) shown.push_back(workspace.visible(room.rank_index));
  return shown;
}

// The time that is drawn. At its end, a step shows its last moment; so does a live run, whose script lags a little. If
// a run is followed, it is the last moment that every rank has recorded.
int64_t drawn_time(const Workspace& workspace, const StageScript& script) {
  if (workspace.playback.state == PlayState::kFollowing)
    return std::max(recorded_until(script) - 1, script.window.range.begin_ns);
  const int64_t now = workspace.cursor.time_ns, last = script.window.range.end_ns - 1;
  return now > last && (now == last + 1 || workspace.store().partial()) ? last : now;
}

int room_of_filter(const Workspace& workspace, const StageScript& script) {
  return workspace.filter.only_rank < 0 ? -1 : script.room_of_rank(workspace.filter.only_rank);
}

void flow_tooltip(const StageScript& script, const TraceStore& store, const StageFlow& flow) {
  if (!ImGui::BeginTooltip()) return;
  const StageFlowKind& kind = script.kinds[flow.kind];
  text(std::string(name(flow.verb)) + ", " + kind.words);
  const double seconds = static_cast<double>(std::max<int64_t>(flow.range.length_ns(), 1)) * 1e-9;
  dim_text(human_bytes(static_cast<double>(flow.bytes)) + " " + std::string(name(flow.dtype)) + " on " +
           std::to_string(script.pair_sets[flow.pairs].size()) + " ways in " +
           format_time(store, flow.range.length_ns()) + ", " + human_bytes(static_cast<double>(flow.bytes) / seconds) +
           "/s together");
  if (flow.microbatch >= 0)
    dim_text(std::string(flow.gradients ? "gradients" : "activations") + " of microbatch " +
             std::to_string(flow.microbatch));
  dim_text("click: choose this event");
  ImGui::EndTooltip();
}

}  // namespace

std::string StagePanel::nothing_to_show(Workspace& workspace) {
  return workspace.store().empty() ? workspace.why_empty() : "";
}

ImVec2 StagePanel::middle_of_room(const StageScript& script, size_t room) const {
  const StageBox& box = script.rooms[room].box;
  return StageView{script, 0, from_, size_}.at((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2);
}

ImVec2 StagePanel::middle_of_flow(const StageScript& script, uint32_t flow) const {
  const StagePath& path = script.paths[script.pair_sets[script.flows[flow].pairs].front().path];
  return StageView{script, 0, from_, size_}.at((path.x0 + 2 * path.control_x + path.x1) / 4,
                                               (path.y0 + 2 * path.control_y + path.y1) / 4);
}

void StagePanel::draw(Workspace& workspace) {
  const StageScript& script = workspace.stage();
  if (script.empty()) return empty_state("Nothing has been recorded yet.");
  const float spacing = ImGui::GetStyle().ItemSpacing.y, line = ImGui::GetTextLineHeightWithSpacing();
  controls(workspace, script);
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const size_t ranks = workspace.store().ranks().size();
  const bool rows = ranks <= kMostRows;
  const float share = space.y > scaled(520) ? 0.2f : 0.14f;
  const float row =
      std::clamp(space.y * share / static_cast<float>(ranks), scaled(space.y > scaled(300) ? 5 : 2), scaled(14));
  const float strip = rows ? (row + 1) * static_cast<float>(ranks) : scaled(16);
  const int told = space.y > scaled(520) ? 4 : space.y > scaled(330) ? 3 : space.y > scaled(230) ? 2 : 1;
  const int legend = space.y > scaled(520) ? 3 : space.y > scaled(230) ? 1 : 0;
  const float below = strip + spacing + line * static_cast<float>(told) + legend_ + (legend > 0 ? spacing : 0);
  picture(workspace, script, {space.x, std::max(space.y - below - spacing, scaled(60))});
  narrator(workspace, script, told);
  scrubber(workspace, script, rows, rows ? row : strip);
  const float before = ImGui::GetCursorPosY();
  if (legend > 0) stage_legend({script, drawn_time(workspace, script), from_, size_}, flows_.flows(), legend);
  legend_ = ImGui::GetCursorPosY() - before;
}

void StagePanel::go(Workspace& workspace, bool forward) {
  const int64_t now = workspace.cursor.time_ns;
  if (by_ == By::kEvent) {
    const auto event = forward ? workspace.store().next_event(now) : workspace.store().previous_event(now);
    if (event) workspace.show_event(*event);
    return;
  }
  workspace.go_to_mark(by_ == By::kLayer, forward);
}

void StagePanel::controls(Workspace& workspace, const StageScript& script) {
  const bool playing = workspace.playback.state == PlayState::kPlaying;
  if (ImGui::ArrowButton("back", ImGuiDir_Left)) go(workspace, false);
  tooltip("back to the event, microbatch or layer before");
  ImGui::SameLine(0, scaled(3));
  if (ImGui::Button(playing ? "pause###play" : "play###play")) {
    workspace.playback.state = playing ? PlayState::kPaused : PlayState::kPlaying;
    if (!playing && workspace.cursor.time_ns >= script.window.range.end_ns)
      workspace.set_time(script.window.range.begin_ns);
  }
  ImGui::SameLine(0, scaled(3));
  if (ImGui::ArrowButton("forward", ImGuiDir_Right)) go(workspace, true);
  tooltip("forward to the next event, microbatch or layer");
  const char* const kBy[] = {"event", "microbatch", "layer"};
  same_line_if_fits(text_width("by eventmicrobatchlayer") + 8 * ImGui::GetStyle().FramePadding.x);
  label("by");
  choice(kBy, by_);
  const int64_t at = drawn_time(workspace, script) - script.window.range.begin_ns;
  std::string words = (script.window.step >= 0 ? "step " + std::to_string(script.window.step) + ", " : "") +
                      format_time(workspace.store(), at) + " of " +
                      format_time(workspace.store(), script.window.range.length_ns());
  if (script.folded_ranks > 0) words += ", " + std::to_string(script.folded_ranks) + " more replicas do the same";
  same_line_if_fits(text_width(words));
  ImGui::AlignTextToFramePadding();
  dim_text(words);
}

void StagePanel::picture(Workspace& workspace, const StageScript& script, ImVec2 size) {
  from_ = ImGui::GetCursorScreenPos();
  size_ = size;
  ImGui::InvisibleButton("picture", size);
  const bool hovered = ImGui::IsItemHovered(), clicked = hovered && ImGui::IsMouseReleased(ImGuiMouseButton_Left);
  const StageView view{script, drawn_time(workspace, script), from_, size_};
  const std::vector<bool> shown = shown_rooms(workspace, script);
  const int only = room_of_filter(workspace, script);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  // Bands along the border may extend a little beyond it.
  draw.PushClipRect({from_.x, from_.y - scaled(4)}, {from_.x + size.x, from_.y + size.y + scaled(4)}, true);
  draw_nodes(draw, view);
  draw_links(draw, view);
  int under = -1;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (size_t i = 0; i < script.rooms.size(); ++i) {
    const StageRoom& room = script.rooms[i];
    const ImVec2 low = view.at(room.box.x0, room.box.y0), high = view.at(room.box.x1, room.box.y1);
    const bool chosen = workspace.cursor.event && workspace.cursor.event->rank_index == room.rank_index;
    draw_room(draw, view, room, shown[i], chosen || only == static_cast<int>(i));
    if (mouse.x >= low.x && mouse.x < high.x && mouse.y >= low.y && mouse.y < high.y) under = static_cast<int>(i);
  }
  flows_.draw(draw, view, shown);
  draw.PopClipRect();
  if (!hovered) return;
  if (under >= 0) {
    const StageRoom& room = script.rooms[static_cast<size_t>(under)];
    room_tooltip(workspace.store(), view, room);
    if (clicked)
      workspace.filter = under == only ? RankFilter{} : RankFilter{.only_rank = room.global_rank, .coordinates = {}};
    return;
  }
  const auto flow = flows_.hit(view, mouse);
  if (!flow) return;
  flow_tooltip(script, workspace.store(), script.flows[*flow]);
  if (clicked) workspace.show_event(script.flows[*flow].event);
}

// Shows the latest lines, the newest last and brightest.
void StagePanel::narrator(Workspace& workspace, const StageScript& script, int lines) {
  const auto told = lines_at(script, drawn_time(workspace, script), static_cast<size_t>(lines));
  for (int i = lines; i > 0; --i) {
    const auto place = static_cast<size_t>(i);
    if (place > told.size()) {
      dim_text(" ");
      continue;
    }
    const StageLine& line = told[told.size() - place];
    const bool newest = line.time_ns == told.back().time_ns;
    const std::string when = format_time(workspace.store(), line.time_ns - script.window.range.begin_ns);
    const float column = scaled(74);
    const float x = ImGui::GetCursorPosX();
    dim_text(when);
    ImGui::SameLine(x + column);
    colored_text(newest ? theme::kText : theme::kDim, elided(line.words, ImGui::GetContentRegionAvail().x));
  }
}

// Shows the step: one row per rank if they fit the height, else how many ranks are idle.
void StagePanel::scrubber(Workspace& workspace, const StageScript& script, bool rows, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const TimeRange range = script.window.range;
  const TraceStore& store = workspace.store();
  const BubbleReport& bubbles = bubbles_.get(workspace.content(Window{{}, script.window.step}),
                                             [&] { return find_bubbles(store, script.window); });
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  float left = at.x + scaled(34), bottom = at.y + height;
  if (rows) {
    bottom = at.y + strip_.draw(store, bubbles, range, height);
  } else {
    const int columns = std::max(1, static_cast<int>((width - scaled(34)) / 2));
    const std::vector<float> idle = idle_strip(bubbles, range, columns);
    for (size_t i = 0; i < idle.size(); ++i)
      draw.AddRectFilled({left + 2 * static_cast<float>(i), at.y}, {left + 2 * static_cast<float>(i) + 2, bottom},
                         blend(im_color(colour(Paint::kForward)), theme::kField, idle[i]));
    ImGui::Dummy({width, height});
  }
  ImGui::SetCursorScreenPos({left, at.y});
  ImGui::InvisibleButton("scrubber", {std::max(at.x + width - left, 10.f), std::max(bottom - at.y, 4.f)});
  const float room = at.x + width - left;
  const double length = static_cast<double>(range.length_ns());
  if (ImGui::IsItemActive()) {
    const double share = std::clamp(static_cast<double>((ImGui::GetMousePos().x - left) / room), 0.0, 0.999999);
    workspace.cursor.event.reset();
    workspace.set_time(range.begin_ns + std::llround(share * length));
  }
  const double share = static_cast<double>(drawn_time(workspace, script) - range.begin_ns) / length;
  const float x = left + room * static_cast<float>(std::clamp(share, 0.0, 1.0));
  draw.AddLine({x, at.y - scaled(2)}, {x, bottom + scaled(2)}, theme::kCursor, scaled(2));
}

}  // namespace ranklab::viz
