#include "viz/app/command_actions.h"

#include <imgui.h>

#include <cmath>
#include <ctime>

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz::action {
namespace {

double middle_of(const Workspace& w) {
  const double cursor = static_cast<double>(w.cursor.time_ns);
  const bool visible = cursor > w.camera.begin_ns && cursor < w.camera.end_ns;
  return visible ? cursor : (w.camera.begin_ns + w.camera.end_ns) / 2;
}

void choose(Workspace& w, std::optional<EventRef> event) {
  if (event) w.show_event(*event);
}

// The stepper of a live run that is paused; null: the keys move the cursor.
StepperControl* paused_stepper(Workspace& w) {
  StepperControl* stepper = w.live ? w.live->stepper() : nullptr;
  return stepper != nullptr && stepper->state().mode == StepperMode::kPaused ? stepper : nullptr;
}

}  // namespace

void open_file(Workspace& w) { w.requests.open_file_dialog = true; }
void open_last(Workspace& w) { w.requests.open_trace = "last"; }
void quit(Workspace& w) { w.requests.quit = true; }
void find(Workspace& w) { w.requests.open_find = true; }
void palette(Workspace& w) { w.requests.open_palette = true; }
void keys(Workspace& w) { w.requests.open_keys = true; }
void metrics(Workspace& w) { w.requests.toggle_metrics = true; }

void save_picture(Workspace& w) {
  std::time_t now = std::time(nullptr);
  std::tm parts = {};
  localtime_r(&now, &parts);
  char name[64];
  std::strftime(name, sizeof name, "ranklab-viz-%Y%m%d-%H%M%S.png", &parts);
  w.requests.picture = name;
}

void copy_link(Workspace& w) {
  if (w.store().empty()) return;
  ImGui::SetClipboardText(w.deep_link().c_str());
  w.log(LogLine::Level::kInfo, "copied " + w.deep_link());
}

void paste_link(Workspace& w) {
  const char* link = ImGui::GetClipboardText();
  if (link == nullptr || *link == '\0') return;
  try {
    w.go_to(link);
  } catch (const Error& error) {
    w.log(LogLine::Level::kError, error.what());
  }
}

void zoom_in(Workspace& w) { w.camera.zoom(0.8, middle_of(w), w.store().range()); }
void zoom_out(Workspace& w) { w.camera.zoom(1.25, middle_of(w), w.store().range()); }
void pan_left(Workspace& w) { w.camera.pan(-0.08); }
void pan_right(Workspace& w) { w.camera.pan(0.08); }
void show_all(Workspace& w) { w.camera.show(w.store().range(), 0.01); }

void focus(Workspace& w) {
  if (!w.cursor.event) return w.area ? w.camera.show(w.area->range, 0.1) : show_all(w);
  const TimeRange range{w.store().begin_ns(*w.cursor.event), w.store().end_ns(*w.cursor.event)};
  const double centre = static_cast<double>(range.begin_ns + range.end_ns) / 2, length = w.camera.length_ns();
  const bool centred = std::abs((w.camera.begin_ns + w.camera.end_ns) / 2 - centre) < length / 200;
  if (centred) return w.camera.show(range, 0.5);
  w.camera.begin_ns = centre - length / 2;
  w.camera.end_ns = centre + length / 2;
}

void event_to_area(Workspace& w) {
  if (!w.cursor.event) return;
  const size_t rank = w.cursor.event->rank_index;
  w.area = Area{{w.store().begin_ns(*w.cursor.event), w.store().end_ns(*w.cursor.event)}, rank, rank};
  w.requests.show_panel = "details";
}

void mark(Workspace& w) {
  if (w.store().empty()) return;
  if (!w.mark_ns || *w.mark_ns == w.cursor.time_ns) {
    w.mark_ns = w.cursor.time_ns;
    return w.log(LogLine::Level::kInfo,
                 "marked " + format_time(w.store(), *w.mark_ns - w.store().range().begin_ns) + "; M again measures");
  }
  const auto [begin, end] = std::minmax(*w.mark_ns, w.cursor.time_ns);
  w.area = Area{{begin, end}, 0, w.store().ranks().size() - 1};
  w.log(LogLine::Level::kInfo, "measured " + format_time(w.store(), end - begin));
  w.mark_ns.reset();
}

void clear(Workspace& w) {
  w.area.reset();
  w.mark_ns.reset();
  w.cursor.event.reset();
}

void show_details(Workspace& w) { w.requests.show_panel = "details"; }
void toggle_bubbles(Workspace& w) { w.show_bubbles = !w.show_bubbles; }
void toggle_arrows(Workspace& w) { w.show_arrows = !w.show_arrows; }
void toggle_path(Workspace& w) { w.show_critical_path = !w.show_critical_path; }
void toggle_modules(Workspace& w) { w.show_modules = !w.show_modules; }
void toggle_theme(Workspace& w) { w.light_theme = !w.light_theme; }
void toggle_insights(Workspace& w) { w.show_insights = !w.show_insights; }

void isolate_rank(Workspace& w, int rank_index) {
  if (rank_index >= static_cast<int>(w.store().ranks().size())) return;
  const int rank = w.store().rank(static_cast<size_t>(rank_index)).global_rank;
  w.filter.only_rank = w.filter.only_rank == rank ? -1 : rank;
}
void all_ranks(Workspace& w) { w.filter = {}; }

void play_or_pause(Workspace& w) {
  if (StepperControl* stepper = paused_stepper(w)) return stepper->resume();
  const bool paused = w.playback.state == PlayState::kPaused;
  w.playback.state = paused ? PlayState::kPlaying : PlayState::kPaused;
  if (paused && w.cursor.time_ns >= w.store().range().end_ns) w.set_time(w.store().range().begin_ns);
}
void follow(Workspace& w) {
  const bool following = w.playback.state == PlayState::kFollowing;
  w.playback.state = following ? PlayState::kPaused : PlayState::kFollowing;
}

void event_forward(Workspace& w) {
  // At the end of what the run has recorded, the run itself is advanced.
  const auto next = w.store().next_event(w.cursor.time_ns);
  StepperControl* stepper = next ? nullptr : paused_stepper(w);
  stepper != nullptr ? stepper->step_events(1) : choose(w, next);
}
void event_back(Workspace& w) { choose(w, w.store().previous_event(w.cursor.time_ns)); }

void microbatch_forward(Workspace& w) { w.go_to_mark(false, true); }
void microbatch_back(Workspace& w) { w.go_to_mark(false, false); }
void layer_forward(Workspace& w) { w.go_to_mark(true, true); }
void layer_back(Workspace& w) { w.go_to_mark(true, false); }

void step_forward(Workspace& w) {
  for (const StepRange& step : w.store().steps()) {
    if (step.step <= w.step()) continue;
    w.cursor.event.reset();
    return w.set_time(step.range.begin_ns);
  }
  if (StepperControl* stepper = paused_stepper(w)) stepper->step_training(1);
}

void step_back(Workspace& w) {
  const auto steps = w.store().steps();
  for (size_t i = steps.size(); i-- > 0;) {
    if (steps[i].range.begin_ns >= w.cursor.time_ns) continue;
    w.cursor.event.reset();
    return w.set_time(steps[i].range.begin_ns);
  }
}

void next_on_row(Workspace& w) {
  if (w.cursor.event) choose(w, w.store().next_on_row(*w.cursor.event));
}
void previous_on_row(Workspace& w) {
  if (w.cursor.event) choose(w, w.store().previous_on_row(*w.cursor.event));
}

void toggle_breakpoint(Workspace& w) {
  StepperControl* stepper = w.live ? w.live->stepper() : nullptr;
  if (stepper == nullptr) {
    return w.log(LogLine::Level::kWarning,
                 "breakpoints need a live run: ./ranklab train --viz, or ./ranklab viz --attach");
  }
  if (!w.cursor.event) return;
  const Event& event = w.store().event(*w.cursor.event);
  Breakpoint wanted{.action = std::string(w.store().name(*w.cursor.event)),
                    .rank = w.store().rank(w.cursor.event->rank_index).global_rank,
                    .microbatch = event.microbatch};
  for (const Breakpoint& old : stepper->state().breakpoints) {
    Breakpoint same = old;
    same.id = 0;
    same.hits = 0;
    if (same == wanted) return stepper->remove_breakpoint(old.id);
  }
  stepper->add_breakpoint(wanted);
  w.log(LogLine::Level::kInfo, "breakpoint: " + to_text(wanted));
}

}  // namespace ranklab::viz::action
