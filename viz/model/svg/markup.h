// Text of a trace or a run's files as text of XML and HTML. Thread rule: pure.
#pragma once
#include <string>
#include <string_view>

namespace ranklab::viz {

// Between tags, or in an attribute in double quotes. Always valid UTF-8: other bytes are shown as \xNN; control
// characters, most of which XML does not allow, become spaces.
std::string as_markup(std::string_view text);

}  // namespace ranklab::viz
