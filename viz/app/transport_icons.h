// Buttons with drawn symbols, sharp at every scale and the same with every font. Thread rule: the ImGui thread.
#pragma once

namespace ranklab::viz {

enum class Icon { kStepBack, kEventBack, kPlay, kPause, kEventForward, kStepForward, kFollow };

// RETURNS: whether the button was clicked. `on`: draw it as pressed. `hint`: shown on hover.
bool icon_button(const char* id, Icon icon, const char* hint, bool on = false);

}  // namespace ranklab::viz
