// Words for a line that a shell reads. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

// In single quotes, whatever characters it contains.
std::string shell_quote(const std::string& text);
// In quotes only where the shell would not leave it as it is.
std::string shell_word(const std::string& text);
// The same of a path, which no command takes for an option.
std::string shell_path(const std::string& path);

}  // namespace ranklab
