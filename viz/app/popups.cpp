#include "viz/app/popups.h"

#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cfloat>
#include <filesystem>

#include "core/base/text.h"
#include "viz/app/commands.h"
#include "viz/model/store/selection.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr const char* kPalette = "Command palette";
constexpr const char* kFind = "Find";
constexpr const char* kKeys = "Keys";
constexpr const char* kOpen = "Open a trace";

bool begin(const char* name, float width) {
  const ImGuiViewport& view = *ImGui::GetMainViewport();
  ImGui::SetNextWindowPos({view.WorkPos.x + view.WorkSize.x / 2, view.WorkPos.y + scaled(40)}, ImGuiCond_Appearing,
                          {0.5f, 0});
  ImGui::SetNextWindowSize({std::min(scaled(width), view.WorkSize.x - scaled(20)), 0});
  ImGui::SetNextWindowSizeConstraints({0, 0}, {FLT_MAX, std::max(view.WorkSize.y - scaled(44), scaled(120))});
  if (!ImGui::BeginPopup(name, ImGuiWindowFlags_NoSavedSettings)) return false;
  // Without Dear ImGui's own key handling, Escape would only deactivate the text field, and nothing could be typed any
  // more.
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, /*repeat=*/false)) ImGui::CloseCurrentPopup();
  return true;
}

bool contains(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

bool is_trace(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".json") || name.ends_with(".json.gz") || name.ends_with(".csv");
}

}  // namespace

void Popups::draw(Workspace& workspace) {
  Requests& wanted = workspace.requests;
  const auto open = [this](bool& flag, const char* name) {
    if (!flag) return;
    flag = false;
    typed_.clear();
    searched_ = "\n";
    found_.clear();
    at_ = 0;
    just_opened_ = true;
    ImGui::OpenPopup(name);
  };
  if (wanted.open_file_dialog && folder_.empty()) {
    std::error_code failed;
    folder_ = std::filesystem::current_path(failed).string();
  }
  open(wanted.open_palette, kPalette);
  open(wanted.open_find, kFind);
  open(wanted.open_keys, kKeys);
  open(wanted.open_file_dialog, kOpen);
  palette(workspace);
  find(workspace);
  keys();
  file_dialog(workspace);
}

template <typename DrawRow>
int Popups::pick(const char* hint, size_t count, DrawRow draw_row) {
  if (just_opened_) ImGui::SetKeyboardFocusHere();
  just_opened_ = false;
  ImGui::SetNextItemWidth(-1);
  const bool entered = ImGui::InputTextWithHint("##typed", hint, &typed_, ImGuiInputTextFlags_EnterReturnsTrue);
  const int last = static_cast<int>(count) - 1;
  const int before = at_;
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++at_;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --at_;
  at_ = std::clamp(at_, 0, std::max(last, 0));
  int chosen = entered && last >= 0 ? at_ : -1;
  const float height =
      ImGui::GetTextLineHeightWithSpacing() * static_cast<float>(std::clamp(last + 1, 1, 14)) + scaled(6);
  ImGui::BeginChild("list", {0, height});
  for (int i = 0; i <= last; ++i) {
    ImGui::PushID(i);
    if (ImGui::Selectable("##row", i == at_, ImGuiSelectableFlags_AllowOverlap)) chosen = i;
    if (i == at_ && at_ != before) ImGui::SetScrollHereY();
    ImGui::SameLine(scaled(6));
    draw_row(static_cast<size_t>(i));
    ImGui::PopID();
  }
  ImGui::EndChild();
  if (chosen >= 0) ImGui::CloseCurrentPopup();
  return chosen;
}

void Popups::palette(Workspace& workspace) {
  if (!begin(kPalette, 520)) return;
  std::vector<const UiCommand*> fitting;
  for (const UiCommand& command : ui_commands())
    if (contains(std::string(command.menu) + " " + command.name, typed_)) fitting.push_back(&command);
  const int chosen = pick("type a command", fitting.size(), [&](size_t i) {
    dim_text(fitting[i]->menu);
    ImGui::SameLine(scaled(64));
    text(fitting[i]->name);
    ImGui::SameLine();
    ImGui::PushStyleColor(ImGuiCol_Text, theme::kDim);
    right_text(fitting[i]->key_text);
    ImGui::PopStyleColor();
  });
  ImGui::EndPopup();
  if (chosen >= 0) fitting[static_cast<size_t>(chosen)]->run(workspace);
}

void Popups::find(Workspace& workspace) {
  if (!begin(kFind, 520)) return;
  const TraceStore& store = workspace.store();
  if (typed_ != searched_) {
    searched_ = typed_;
    found_ = typed_.empty() ? std::vector<EventRef>() : search_events(store, typed_, 200);
    at_ = 0;
  }
  const int chosen = pick("an event: F7, all_reduce, optimizer ...", found_.size(), [&](size_t i) {
    const EventRef ref = found_[i];
    swatch(im_color(colour(paint_of(store.event(ref), store.name(ref)))), store.text(ref));
    ImGui::SameLine(scaled(180));
    dim_text(store.rank(ref.rank_index).label);
    ImGui::SameLine();
    ImGui::PushStyleColor(ImGuiCol_Text, theme::kDim);
    right_text("at " + format_time(store, store.begin_ns(ref) - store.range().begin_ns));
    ImGui::PopStyleColor();
  });
  if (!typed_.empty()) dim_text(found_.size() == 200 ? "the first 200" : strprintf("%zu found", found_.size()));
  ImGui::EndPopup();
  if (chosen >= 0) workspace.show_event(found_[static_cast<size_t>(chosen)]);
}

void Popups::keys() {
  if (!begin(kKeys, 720)) return;
  if (ImGui::BeginTable("keys", 4, ImGuiTableFlags_SizingFixedFit)) {
    for (const UiCommand& command : ui_commands()) {
      if (*command.key_text == '\0') continue;
      ImGui::TableNextColumn();
      colored_text(theme::kAccent, command.key_text);
      ImGui::TableNextColumn();
      text(command.name);
    }
    const char* others[][2] = {{"1 - 8", "One rank alone"},
                               {"Ctrl+wheel", "Zoom about the mouse"},
                               {"drag", "Select time and ranks"},
                               {"Shift+drag", "Pan"}};
    for (const auto& [key, what] : others) {
      ImGui::TableNextColumn();
      colored_text(theme::kAccent, key);
      ImGui::TableNextColumn();
      text(what);
    }
    ImGui::EndTable();
  }
  ImGui::EndPopup();
}

void Popups::file_dialog(Workspace& workspace) {
  if (!begin(kOpen, 640)) return;
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<fs::path> entries = {".."};
  for (fs::directory_iterator it(folder_, failed), end; !failed && it != end && entries.size() < 2000;
       it.increment(failed)) {
    std::error_code unknown;
    if ((it->is_directory(unknown) || is_trace(it->path())) && contains(it->path().filename().string(), typed_))
      entries.push_back(it->path());
  }
  std::sort(entries.begin() + 1, entries.end());
  dim_text(folder_);
  const bool is_path = typed_.starts_with("/") && fs::is_regular_file(typed_, failed);
  if (is_path) entries = {typed_};
  const int chosen = pick("a path, or a part of a name", entries.size(), [&](size_t i) {
    std::error_code unknown;
    const bool folder = i == 0 ? !is_path : fs::is_directory(entries[i], unknown);
    if (folder) dim_text(entries[i].filename().string() + "/");
    if (!folder) text(entries[i].filename().string());
  });
  ImGui::Checkbox("as second trace, to compare", &compare_);
  ImGui::EndPopup();
  if (chosen < 0) return;
  const fs::path target =
      chosen == 0 && !is_path ? fs::path(folder_).parent_path() : entries[static_cast<size_t>(chosen)];
  if (fs::is_directory(target, failed)) {
    folder_ = target.string();
    workspace.requests.open_file_dialog = true;  // continue with the content of the folder
    return;
  }
  (compare_ ? workspace.requests.compare_with : workspace.requests.open_trace) = target.string();
}

}  // namespace ranklab::viz
