// In the server: a client's request, and how a copy takes on what it says.
#pragma once
#include <string>
#include <vector>

#include "tests/fork_server/request.h"

namespace ranklab::fork_server {

// A request holds open files and points into its own text.
class CommandLine {
 public:
  CommandLine() = default;
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // False: the client is gone, or is another user's.
  bool receive(int socket);
  const Circumstances& circumstances() const { return request_.circumstances; }
  char** variables() { return variables_.data(); }

  // Gives this process, a copy of the server, the client's folder, files, signals and environment.
  void take_on();
  int call(int (*program)(int, char**, char**)) {
    return program(static_cast<int>(request_.argument_count), arguments_.data(), variables_.data());
  }

 private:
  bool receive_files(int socket);
  void split_text();

  Request request_{};
  std::vector<int> files_;  // as received; the folder is the last
  std::string text_;
  std::vector<char*> arguments_, variables_;  // into the text, each ended by a null pointer
};

}  // namespace ranklab::fork_server
