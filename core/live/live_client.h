// A viewer of a run in another process, over the socket that `ranklab train --viz-listen` opened. A thread of its own
// reads and writes; the run never waits for it. What the run sends is read as hostile (live_message.h).
// Thread rule: as LiveSource.
#pragma once
#include <memory>
#include <string>

#include "core/live/live_source.h"

namespace ranklab {

// The path of a run's socket: of a folder FOLDER/viz.sock, of "" runs/last/viz.sock; other texts stay as they are.
// "unix:" in front is taken off.
std::string live_address(const std::string& text);

// Connects to live_address(text), and waits half a second at most for the run's answer: with it come its world size,
// its stepper's state and the events it still has. Throws kIo when nobody listens there; what breaks later shows as
// kEnded with a message.
std::unique_ptr<LiveSource> attach(const std::string& text = "");

}  // namespace ranklab
