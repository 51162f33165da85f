#include "viz/app/application.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "viz/app/commands.h"
#include "viz/model/parity/parity_file.h"
#include "viz/model/store/deep_link.h"
#include "viz/model/store/load_trace.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr ImGuiWindowFlags kBar = ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse |
                                  ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking;

}  // namespace

Application::Application() {
  for (const PanelRow& row : panel_rows()) panels_.push_back({&row, row.make(), false, false, {}});
  settings_.read = [this](const std::string& key, const std::string& value) { read_setting(key, value); };
  settings_.write = [this] { return settings(); };
  add_settings(settings_);
}

Application::~Application() {
  if (ImGui::GetIO().IniFilename != nullptr) ImGui::SaveIniSettingsToDisk(ImGui::GetIO().IniFilename);
  remove_settings();
}

std::string Application::settings() const {
  std::string open;
  for (const OpenPanel& panel : panels_)
    if (panel.open) open += std::string(open.empty() ? "" : ",") + panel.row->id;
  return "layout=" + layout_ + "\nopen=" + open + "\n" +
         strprintf("scale=%.2f\n", static_cast<double>(workspace_.display_scale)) +
         (workspace_.light_theme ? "theme=light\n" : "theme=dark\n");
}

void Application::read_setting(const std::string& key, const std::string& value) {
  if (key == "scale" && workspace_.display_scale == 1) {
    const float scale = std::strtof(value.c_str(), nullptr);
    if (scale >= 0.5f && scale <= 4) workspace_.display_scale = scale;
  }
  if (key == "theme" && !theme_wanted_) workspace_.light_theme = value == "light";
  if (layout_wanted_) return;  // a layout was requested by name
  if (key == "layout" && find_layout(value) != nullptr) layout_ = value;
  if (key != "open") return;
  for (OpenPanel& panel : panels_)
    panel.open = ("," + value + ",").find("," + std::string(panel.row->id) + ",") != std::string::npos;
  restored_ = true;
}

void Application::start(const VizRequest& request) {
  if (!request.traces.empty()) {
    workspace_.load(request.traces.size() == 1 ? load_trace(request.traces[0]) : load_traces(request.traces));
  }
  if (request.gpus_per_node > 0) workspace_.store().set_gpus_per_node(request.gpus_per_node);
  if (!request.compare.empty()) workspace_.load_other(load_trace(request.compare));
  if (!request.parity.empty()) {
    workspace_.load_parity(read_parity_file(request.parity), request.parity);
  } else if (request.traces.size() == 1) {
    load_parity_beside();
  }
  if (!request.parity.empty() && request.panel.empty()) workspace_.requests.show_panel = "parity";
  if (!request.go_to.empty()) workspace_.go_to(request.go_to);
  workspace_.live = request.live;
  if (request.live) workspace_.playback.state = PlayState::kFollowing;
  awaits_run_ = request.live != nullptr;
  workspace_.display_scale = request.scale;
  if (!request.theme.empty()) {
    workspace_.light_theme = request.theme == "light";
    theme_wanted_ = true;
  }
  if (!request.layout.empty()) {
    std::vector<std::string> names;
    for (const LayoutPreset& preset : layout_presets()) names.emplace_back(preset.name);
    RANKLAB_CHECK(find_layout(request.layout) != nullptr, ErrorKind::kInvalidArgument, .where = "--layout",
                  .what = "there is no such layout", .got = quote(request.layout), .want = join(names, ", "),
                  .fix = "choose one of these");
    use_layout(request.layout);
  }
  if (!request.panel.empty()) {
    std::vector<std::string> ids;
    for (const PanelRow& row : panel_rows()) ids.emplace_back(row.id);
    RANKLAB_CHECK(find_panel(request.panel) != nullptr, ErrorKind::kInvalidArgument, .where = "--panel",
                  .what = "there is no such panel", .got = quote(request.panel), .want = join(ids, ", "),
                  .fix = did_you_mean(request.panel, ids, "choose one of these"));
    workspace_.requests.show_panel = request.panel;
  }
}

void Application::use_layout(const std::string& name) {
  const LayoutPreset* preset = find_layout(name);
  if (preset == nullptr) return;
  layout_ = preset->name;
  layout_wanted_ = laid_out_ = true;
  for (OpenPanel& panel : panels_) {
    panel.open = std::any_of(preset->panels.begin(), preset->panels.end(),
                             [&](const char* id) { return std::string_view(id) == panel.row->id; });
  }
}

Panel* Application::panel(const std::string& id) {
  for (OpenPanel& panel : panels_)
    if (panel.row->id == id) return panel.panel.get();
  return nullptr;
}

bool Application::is_open(const std::string& id) const {
  return std::any_of(panels_.begin(), panels_.end(), [&](const OpenPanel& p) { return p.open && p.row->id == id; });
}

void Application::open_panel(const std::string& id) {
  for (OpenPanel& panel : panels_)
    if (panel.row->id == id) panel.open = true;
  select_tab(id.c_str());
  ImGui::SetWindowFocus(window_name(id.c_str()).c_str());
}

bool Application::animates() const {
  return workspace_.playback.state == PlayState::kPlaying || workspace_.live != nullptr || layout_wanted_ ||
         panels_busy_;
}

std::string Application::take_picture_request() { return std::exchange(workspace_.requests.picture, {}); }

void Application::apply_look() {
  const ThemeKind kind = workspace_.light_theme ? ThemeKind::kLight : ThemeKind::kDark;
  const bool rescale = workspace_.display_scale != applied_scale_ && !ImGui::IsMouseDown(ImGuiMouseButton_Left);
  if (!rescale && kind == theme_kind()) return;
  applied_scale_ = workspace_.display_scale;
  apply_theme(applied_scale_, kind);
}

// If a live run is paused when its window opens, it waits to be stepped, so the stepper is shown. A run in this process
// begins only after its window has opened.
void Application::meet_run() {
  if (!awaits_run_ || workspace_.live == nullptr) return;
  StepperControl* const stepper = workspace_.live->stepper();
  const bool held = stepper != nullptr && stepper->state().mode == StepperMode::kPaused;
  if (held) workspace_.requests.show_panel = "stepper";
  awaits_run_ = !held && workspace_.store().empty();
}

void Application::frame(double seconds) {
  apply_look();
  workspace_.poll_live();
  meet_run();
  workspace_.advance(seconds);
  panels_busy_ = false;
  for (OpenPanel& panel : panels_) panels_busy_ |= panel.panel->advance(workspace_);
  run_pressed_commands(workspace_);
  menu_bar();
  transport();
  dockspace();
  for (OpenPanel& panel : panels_)
    if (panel.open) draw_panel(panel);
  shown_ = true;
  popups_.draw(workspace_);
  if (show_metrics_) ImGui::ShowMetricsWindow(&show_metrics_);
  answer_requests();
}

void Application::menu_bar() {
  if (!ImGui::BeginMainMenuBar()) return;
  for (const char* menu : {"File", "View", "Run", "Help"}) {
    if (!ImGui::BeginMenu(menu)) continue;
    bool first = true;
    for (const UiCommand& command : ui_commands()) {
      if (std::string_view(command.menu) != menu) continue;
      if (command.starts_group && !first) ImGui::Separator();
      first = false;
      if (ImGui::MenuItem(command.name, command.key_text)) command.run(workspace_);
    }
    if (std::string_view(menu) == "View") view_menu();
    ImGui::EndMenu();
  }
  status_text();
  ImGui::EndMainMenuBar();
}

void Application::view_menu() {
  ImGui::SeparatorText("Layout");
  for (const LayoutPreset& preset : layout_presets()) {
    if (ImGui::MenuItem(preset.name, nullptr, layout_ == preset.name)) use_layout(preset.name);
    tooltip(preset.about);
  }
  ImGui::SeparatorText("Panels");
  for (OpenPanel& panel : panels_) {
    if (ImGui::MenuItem((std::string(panel.row->title) + "##panel").c_str(), nullptr, &panel.open) && panel.open)
      workspace_.requests.show_panel = panel.row->id;
    tooltip(panel.row->about);
  }
  ranks_menu();
  ImGui::SeparatorText("Display scale");
  ImGui::SetNextItemWidth(-1);
  ImGui::SliderFloat("##scale", &workspace_.display_scale, 0.7f, 3, "%.2f");
}

void Application::ranks_menu() {
  if (workspace_.store().empty() || !ImGui::BeginMenu("Show ranks of")) return;
  if (ImGui::MenuItem("all", "0", !workspace_.filter.active())) workspace_.filter = {};
  const MeshTable& mesh = workspace_.mesh();
  for (const Axis axis : mesh.axes) {
    int size = 0;
    for (size_t rank = 0; rank < mesh.ranks.size(); ++rank) size = std::max(size, mesh.coordinate(rank, axis) + 1);
    for (int i = 0; i < size; ++i) {
      const std::pair<Axis, int> wanted(axis, i);
      auto& coordinates = workspace_.filter.coordinates;
      const auto at = std::find(coordinates.begin(), coordinates.end(), wanted);
      const std::string label = std::string(name(axis)) + " " + std::to_string(i);
      if (!ImGui::MenuItem(label.c_str(), nullptr, at != coordinates.end())) continue;
      if (at != coordinates.end()) {
        coordinates.erase(at);
      } else {
        std::erase_if(coordinates, [axis](const auto& other) { return other.first == axis; });
        coordinates.push_back(wanted);
      }
    }
    ImGui::Separator();
  }
  ImGui::EndMenu();
}

void Application::status_text() {
  const TraceStore& store = workspace_.store();
  std::string words = store.empty() ? "no trace" : store.source();
  if (!store.title().empty()) {
    const std::string both = store.title() + "    " + words;
    const float room = ImGui::GetWindowWidth() - ImGui::GetCursorPosX() - scaled(40);
    words = ImGui::CalcTextSize(both.c_str()).x < room ? both : elided(store.title(), room);
  }
  if (workspace_.live) words = std::string(name(workspace_.live->status())) + "  " + workspace_.live->message();
  if (workspace_.filter.active()) words += "   some ranks are hidden (0 shows all)";
  const auto& log = workspace_.log_lines();
  const bool trouble = !log.empty() && log.back().level != LogLine::Level::kInfo;
  if (trouble) words = log.back().text;
  const float width = ImGui::CalcTextSize(words.c_str()).x + scaled(12);
  ImGui::SameLine(std::max(ImGui::GetCursorPosX() + scaled(20), ImGui::GetWindowWidth() - width));
  colored_text(trouble ? theme::kBad : theme::kDim, words);
}

void Application::transport() {
  if (ImGui::BeginViewportSideBar("##transport", ImGui::GetMainViewport(), ImGuiDir_Up, transport_.height(), kBar)) {
    transport_.draw(workspace_);
  }
  ImGui::End();
  const float height = InsightsBar::height(workspace_);
  if (height == 0) return;
  if (ImGui::BeginViewportSideBar("##insights", ImGui::GetMainViewport(), ImGuiDir_Up, height, kBar))
    insights_.draw(workspace_);
  ImGui::End();
}

void Application::dockspace() {
  const ImGuiID id = ImGui::GetID("dockspace");
  if ((ImGui::DockBuilderGetNode(id) == nullptr || !restored_) && !layout_wanted_ && !std::exchange(laid_out_, true))
    use_layout(layout_);
  // When bars appear or disappear, the space for panels changes one frame later, so the layout waits for a steady size.
  const ImVec2 size = ImGui::GetMainViewport()->WorkSize;
  const bool steady = size.x == work_size_.x && size.y == work_size_.y;
  work_size_ = size;
  // If the bars fill the whole window, panels are not laid out until there is space.
  const bool room = size.x > 0 && size.y > 0;
  if (layout_wanted_ && steady && room) {
    layout_wanted_ = false;
    apply_layout(*find_layout(layout_), id, size);
    bring_to_front_in_ = 2;  // after the windows are docked
  } else if (bring_to_front_in_ > 0 && --bring_to_front_in_ == 0) {
    for (const char* front : find_layout(layout_)->front) select_tab(front);
    ImGui::SetWindowFocus(window_name(find_layout(layout_)->front.back()).c_str());
  }
  keep_shares(id, size);
  ImGui::DockSpaceOverViewport(id, ImGui::GetMainViewport(),
                               static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoWindowMenuButton) |
                                   static_cast<ImGuiDockNodeFlags>(ImGuiDockNodeFlags_NoCloseButton));
}

void Application::draw_panel(OpenPanel& panel) {
  ImGui::SetNextWindowSize({scaled(640), scaled(420)}, ImGuiCond_FirstUseEver);
  const bool quiet = panel.panel->scrolls_itself();
  ImGuiWindowFlags flags = quiet ? ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse : 0;
  // Each panel restored from the last session would take the focus from the previous one, and come to the front of its
  // dock node.
  if (restored_ && !shown_) flags |= ImGuiWindowFlags_NoFocusOnAppearing;
  if (ImGui::Begin(window_name(panel.row->id).c_str(), &panel.open, flags)) {
    draw_content(panel);
  }
  ImGui::End();
}

// If a panel throws an error, its own window shows it; the rest of the application continues.
void Application::draw_content(OpenPanel& panel) {
  ImGuiErrorRecoveryState before;
  ImGui::ErrorRecoveryStoreState(&before);
  try {
    const std::string nothing = panel.panel->nothing_to_show(workspace_);
    if (nothing.empty()) {
      panel.panel->draw(workspace_);
    } else {
      empty_state(nothing);
    }
  } catch (const Error& error) {
    ImGui::ErrorRecoveryTryToRecoverState(&before);
    if (panel.error != error.what()) workspace_.log(LogLine::Level::kError, error.what());
    panel.error = error.what();
    ImGui::TextWrapped("%s", error.what());
  }
}

void Application::frame_of_panel(const std::string& panel_id) {
  apply_look();
  const ImGuiViewport& view = *ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(view.Pos);
  ImGui::SetNextWindowSize(view.Size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  ImGui::Begin("##panel", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoDocking);
  ImGui::PopStyleVar(2);
  for (OpenPanel& panel : panels_)
    if (panel.row->id == panel_id) draw_content(panel);
  ImGui::End();
}

// Nobody asked for this file, so an error in it stops nothing.
void Application::load_parity_beside() {
  try {
    const std::string path = parity_file_beside(workspace_.store().source());
    if (!path.empty()) workspace_.load_parity(read_parity_file(path), path);
  } catch (const Error& error) {
    workspace_.log(LogLine::Level::kError, error.what());
  }
}

void Application::open_requested(std::string& path, bool compare) {
  if (path.empty()) return;
  const std::string asked = std::exchange(path, {});
  try {
    if (compare) {
      workspace_.load_other(load_trace(asked));
      workspace_.requests.show_panel = "diff";
    } else if (is_parity_file(asked)) {
      workspace_.load_parity(read_parity_file(asked), asked);
      workspace_.requests.show_panel = "parity";
    } else {
      RANKLAB_CHECK(!workspace_.has_live_run(), ErrorKind::kInvalidArgument, .where = "open",
                    .what = "this window shows a live run, which can be stepped only here", .got = asked,
                    .want = "a window without a live run", .fix = "ranklab viz " + asked + ", in another terminal");
      workspace_.open(asked);
      workspace_.close_parity();
      load_parity_beside();
    }
  } catch (const Error& error) {
    workspace_.log(LogLine::Level::kError, error.what());
  }
}

void Application::answer_requests() {
  Requests& wanted = workspace_.requests;
  open_requested(wanted.open_trace, false);
  open_requested(wanted.compare_with, true);
  if (!wanted.layout.empty()) use_layout(std::exchange(wanted.layout, {}));
  const bool settled = !layout_wanted_ && bring_to_front_in_ == 0;  // otherwise the layout would cover it
  if (settled && !wanted.show_panel.empty()) {
    const std::string id = std::exchange(wanted.show_panel, {});
    if (find_panel(id) != nullptr) open_panel(id);
  }
  if (std::exchange(wanted.toggle_metrics, false)) show_metrics_ = !show_metrics_;
}

}  // namespace ranklab::viz
