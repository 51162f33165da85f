// The fast way to read an event: our writer puts each on a line of its own, with its keys in one order. Anything else
// is left to the general reader, so this one never has to judge a file. Cost: about 0.5 us an event. Thread rule: one
// thread.
#pragma once
#include <string_view>

#include "core/trace/chrome_events.h"

namespace ranklab {

// Does with `line` (an object without the comma after it) what ChromeEvents::event() would. False when the line is not
// as our writer writes it: nothing was added then.
bool add_chrome_line(std::string_view line, ChromeEvents& events);

}  // namespace ranklab
