// Escapes text of a trace or of a run's files for XML and HTML. Thread rule: pure.
#pragma once
#include <string>
#include <string_view>

namespace ranklab::viz {

// For use between tags, or in an attribute in double quotes. The result is always valid UTF-8: other bytes are shown as
// \xNN; control characters, most of which XML does not allow, become spaces.
std::string as_markup(std::string_view text);

}  // namespace ranklab::viz
