#include "viz/app/commands.h"

#include <imgui_internal.h>

#include "viz/app/command_actions.h"

namespace ranklab::viz {
namespace {

constexpr ImGuiKeyChord kCtrl = ImGuiMod_Ctrl, kShift = ImGuiMod_Shift;

const UiCommand kCommands[] = {
    {"File", "Open a trace ...", kCtrl | ImGuiKey_O, "Ctrl+O", action::open_file},
    {"File", "Open the last run", 0, "", action::open_last},
    {"File", "Save a picture of the window", kCtrl | ImGuiKey_S, "Ctrl+S", action::save_picture, false, true},
    {"File", "Copy a link to this position", kCtrl | ImGuiKey_L, "Ctrl+L", action::copy_link},
    {"File", "Go to the link in the clipboard", kCtrl | kShift | ImGuiKey_L, "Ctrl+Shift+L", action::paste_link},
    {"File", "Quit", kCtrl | ImGuiKey_Q, "Ctrl+Q", action::quit, false, true},

    {"View", "Zoom in", ImGuiKey_W, "W", action::zoom_in, true},
    {"View", "Zoom out", ImGuiKey_S, "S", action::zoom_out, true},
    {"View", "Pan left", ImGuiKey_A, "A", action::pan_left, true},
    {"View", "Pan right", ImGuiKey_D, "D", action::pan_right, true},
    {"View", "Centre the chosen event, then fit it", ImGuiKey_F, "F", action::focus},
    {"View", "Show the whole trace", ImGuiKey_Home, "Home", action::show_all},
    {"View", "Select the chosen event's time", ImGuiKey_R, "R", action::event_to_area, false, true},
    {"View", "Mark here, then measure to here", ImGuiKey_M, "M", action::mark},
    {"View", "Clear selection", ImGuiKey_Escape, "Esc", action::clear},
    {"View", "Details of the chosen event", ImGuiKey_Q, "Q", action::show_details},
    {"View", "Bubbles on or off", kShift | ImGuiKey_B, "Shift+B", action::toggle_bubbles, false, true},
    {"View", "Dependency arrows on or off", 0, "", action::toggle_arrows},
    {"View", "Critical path on or off", ImGuiKey_C, "C", action::toggle_path},
    {"View", "Modules and kernels on or off", 0, "", action::toggle_modules},
    {"View", "What costs most, on or off", 0, "", action::toggle_insights},
    {"View", "Light or dark theme", 0, "", action::toggle_theme},
    {"View", "Show all ranks", ImGuiKey_0, "0", action::all_ranks},

    {"Run", "Play or pause", ImGuiKey_Space, "Space", action::play_or_pause},
    {"Run", "Follow a live run", 0, "", action::follow},
    {"Run", "Event forward", ImGuiKey_RightArrow, "Right", action::event_forward, true, true},
    {"Run", "Event back", ImGuiKey_LeftArrow, "Left", action::event_back, true},
    {"Run", "Step forward", kShift | ImGuiKey_RightArrow, "Shift+Right", action::step_forward, true},
    {"Run", "Step back", kShift | ImGuiKey_LeftArrow, "Shift+Left", action::step_back, true},
    {"Run", "Microbatch forward", kCtrl | ImGuiKey_RightArrow, "Ctrl+Right", action::microbatch_forward, true},
    {"Run", "Microbatch back", kCtrl | ImGuiKey_LeftArrow, "Ctrl+Left", action::microbatch_back, true},
    {"Run", "Layer forward", ImGuiMod_Alt | ImGuiKey_RightArrow, "Alt+Right", action::layer_forward, true},
    {"Run", "Layer back", ImGuiMod_Alt | ImGuiKey_LeftArrow, "Alt+Left", action::layer_back, true},
    {"Run", "Next event on the row", ImGuiKey_Period, ".", action::next_on_row, true},
    {"Run", "Previous event on the row", ImGuiKey_Comma, ",", action::previous_on_row, true},
    {"Run", "Breakpoint at the chosen event", ImGuiKey_B, "B", action::toggle_breakpoint, false, true},

    {"Help", "Find", kCtrl | ImGuiKey_P, "Ctrl+P", action::find},
    {"Help", "Command palette", kCtrl | kShift | ImGuiKey_P, "Ctrl+Shift+P", action::palette},
    {"Help", "Keys", kShift | ImGuiKey_Slash, "?", action::keys},
    {"Help", "Metrics", 0, "", action::metrics},
};

}  // namespace

std::span<const UiCommand> ui_commands() { return kCommands; }

void run_pressed_commands(Workspace& workspace) {
  if (ImGui::GetIO().WantTextInput || ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup)) return;
  for (const UiCommand& command : kCommands) {
    if (command.key == 0) continue;
    if (ImGui::IsKeyChordPressed(command.key, command.repeats ? ImGuiInputFlags_Repeat : 0)) command.run(workspace);
  }
  for (int digit = 1; digit <= 8; ++digit) {
    if (ImGui::IsKeyChordPressed(static_cast<ImGuiKey>(ImGuiKey_0 + digit))) action::isolate_rank(workspace, digit - 1);
  }
}

}  // namespace ranklab::viz
