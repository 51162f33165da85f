// Reads lines from a user or a script, and handles Ctrl-C between them. The prompt is shown only on a terminal. Thread
// rule: the main thread.
#pragma once
#include <optional>
#include <string>

namespace ranklab {

class DebugInput {
 public:
  DebugInput();   // takes over Ctrl-C
  ~DebugInput();  // restores it
  DebugInput(const DebugInput&) = delete;
  DebugInput& operator=(const DebugInput&) = delete;

  bool interactive() const { return interactive_; }
  // The next line; nothing at the end of input, on Ctrl-C, or when the run is about to end (interrupt_requested()).
  std::optional<std::string> next_line();
  // Whether Ctrl-C was pressed since the last call.
  bool ctrl_c();

 private:
  bool wait_for_input();
  std::optional<std::string> line_in_buffer();

  int pipe_[2] = {-1, -1};
  bool interactive_ = false;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace ranklab
