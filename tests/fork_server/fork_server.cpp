#include "tests/fork_server/fork_server.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "tests/fork_server/request.h"
#include "tests/fork_server/server_variables.h"

namespace ranklab::fork_server {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("fork server: " + what + ": " + std::strerror(errno));
}

// The environment with which the server is started, and what turns the program into a server.
std::vector<std::string> environment_of_server(int listener, const std::string& library) {
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable) out.emplace_back(*variable);
  out.push_back("LD_PRELOAD=" RANKLAB_FORK_SERVER_FILE);
  out.push_back(std::string(kListenerVariable) + "=" + std::to_string(listener));
  out.push_back(std::string(kLibraryVariable) + "=" + library);
  return out;
}

[[noreturn]] void become_server(const std::string& program, int listener, std::vector<std::string> environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);  // what a terminal sends is for the clients
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);  // nobody waits for the end of a pipe that the server holds
  ::dup2(nothing, STDOUT_FILENO);
  ::fcntl(listener, F_SETFD, 0);
  std::string name = program;
  std::vector<char*> arguments = {name.data(), nullptr}, variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  variables.push_back(nullptr);
  ::execve(program.c_str(), arguments.data(), variables.data());
  ::_exit(127);
}

}  // namespace

ForkServer::ForkServer(const std::string& program, const std::string& library) {
  if (std::getenv("LD_PRELOAD") != nullptr) throw std::runtime_error("fork server: LD_PRELOAD is set; do: unset it");
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof address.sun_family;  // no name: the kernel gives one that nobody has
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0) fail("no socket");
  size = sizeof address;
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0 || ::listen(listener, 128) != 0)
    fail("no socket to listen on");
  const std::string name(address.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
  const std::vector<std::string> environment = environment_of_server(listener, library);
  pid_ = ::fork();
  if (pid_ == 0) become_server(program, listener, environment);
  ::close(listener);  // with the server's, clients that come when it is gone are told so
  if (pid_ < 0) fail("no process");
  ::setenv(kServerVariable, (name + ":" + program).c_str(), 1);
}

ForkServer::~ForkServer() {
  ::unsetenv(kServerVariable);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace ranklab::fork_server
