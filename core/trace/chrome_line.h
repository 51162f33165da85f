// The fast path for reading an event: our writer puts each event on a line of its own, with its keys in a fixed order.
// Everything else is left to the general reader, so this one never has to diagnose errors. Cost: about 0.5 us per
// event. Thread rule: one thread.
#pragma once
#include <string_view>

#include "core/trace/chrome_events.h"

namespace ranklab {

// Has the same effect as ChromeEvents::event() on `line` (an object without the comma after it). False when the line
// does not look like our writer's; then nothing was added.
bool add_chrome_line(std::string_view line, ChromeEvents& events);

}  // namespace ranklab
