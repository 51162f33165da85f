// A fork server of a program (request.h says what for), for as long as the object lives.
#pragma once
#include <sys/types.h>

#include <string>

namespace ranklab::fork_server {

class ForkServer {
 public:
  // `library`, opened before the first copy, is what the program would open itself at a cost; empty: none. Clients find
  // the server by the environment of this process. Call it before there are threads: the server ends with the thread
  // that started it. Throws std::runtime_error if a server cannot be started.
  ForkServer(const std::string& program, const std::string& library);
  // Ends the server and its copies, and waits, so that their processor time counts as this process's children's.
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

 private:
  pid_t pid_ = -1;
};

}  // namespace ranklab::fork_server
