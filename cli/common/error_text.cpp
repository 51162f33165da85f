#include "cli/common/error_text.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "cli/common/style.h"
#include "cli/common/table.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_program.h"
#include "core/base/system.h"

namespace ranklab {

void print_error(const std::string& message) {
  const std::string prefix = "ranklab: error:", text = as_typed(message);
  const std::string painted = style_for(stderr).red(prefix);
  if (!on_terminal(STDERR_FILENO)) {
    std::cerr << painted << " " << text << "\n";
    return;
  }
  constexpr int kIndent = 2;
  const int columns = std::max(40, terminal_columns(100, STDERR_FILENO));
  std::istringstream paragraphs(prefix + " " + text);
  bool first = true;
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    for (const std::string& line : wrapped_lines(paragraph, columns - kIndent)) {
      std::cerr << (first ? painted + line.substr(prefix.size()) : std::string(kIndent, ' ') + line) << "\n";
      first = false;
    }
  }
}

}  // namespace ranklab
