// A step as one HTML file that plays: the stage, the timeline and a narrator, without any network access (its content
// security policy forbids all of it). Text of the trace becomes neither markup nor script. Thread rule: pure.
#pragma once
#include <optional>
#include <string>

#include "viz/model/stage/script.h"

namespace ranklab::viz {

// `open_ns`: the time at which the page opens; nothing: a moment at which much is to be seen. Throws kInvalidArgument
// if the script is empty.
std::string stage_page(const TraceStore& store, const StageScript& script, std::optional<int64_t> open_ns = {});

}  // namespace ranklab::viz
