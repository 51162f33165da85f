// Quotes words for a shell command line. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

// Always in single quotes, whatever characters the text contains.
std::string shell_quote(const std::string& text);
// In quotes only where the shell would otherwise change the word.
std::string shell_word(const std::string& text);
// The same for a path, written so that no command takes it for an option.
std::string shell_path(const std::string& path);

}  // namespace ranklab
