// A viewer of a run in another process, connected to the socket that `ranklab train --viz-listen` opened. A separate
// thread reads and writes; the run never waits for it. What the run sends is treated as untrusted input
// (live_message.h). Thread rule: as for LiveSource.
#pragma once
#include <memory>
#include <string>

#include "core/live/live_source.h"

namespace ranklab {

// The path of a run's socket: FOLDER/viz.sock for a folder, runs/last/viz.sock for ""; other texts are unchanged. A
// leading "unix:" is removed.
std::string live_address(const std::string& text);

// Connects to live_address(text), and waits at most half a second for the run's answer: its world size, its stepper's
// state and the events it still has. Throws kIo when nobody listens there; a later failure shows as kEnded with a
// message.
std::unique_ptr<LiveSource> attach(const std::string& text = "");

}  // namespace ranklab
