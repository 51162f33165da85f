// The functions that commands call. Thread rule: the window's thread.
#pragma once
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz::action {

void open_file(Workspace& w);
void open_last(Workspace& w);
void save_picture(Workspace& w);
void copy_link(Workspace& w);
void paste_link(Workspace& w);
void quit(Workspace& w);
void zoom_in(Workspace& w);  // about the cursor if it is visible, else about the middle of the view
void zoom_out(Workspace& w);
void pan_left(Workspace& w);
void pan_right(Workspace& w);
void focus(Workspace& w);
void show_all(Workspace& w);
void event_to_area(Workspace& w);
void mark(Workspace& w);
void clear(Workspace& w);
void show_details(Workspace& w);
void toggle_bubbles(Workspace& w);
void toggle_arrows(Workspace& w);
void toggle_path(Workspace& w);
void toggle_modules(Workspace& w);
void toggle_insights(Workspace& w);
void toggle_theme(Workspace& w);
void isolate_rank(Workspace& w, int rank_index);
void all_ranks(Workspace& w);
void play_or_pause(Workspace& w);
void follow(Workspace& w);
void event_forward(Workspace& w);
void event_back(Workspace& w);
void microbatch_forward(Workspace& w);
void microbatch_back(Workspace& w);
void layer_forward(Workspace& w);
void layer_back(Workspace& w);
void step_forward(Workspace& w);
void step_back(Workspace& w);
void next_on_row(Workspace& w);
void previous_on_row(Workspace& w);
void toggle_breakpoint(Workspace& w);
void find(Workspace& w);
void palette(Workspace& w);
void keys(Workspace& w);
void metrics(Workspace& w);

}  // namespace ranklab::viz::action
