// Preloaded into the program (LD_PRELOAD), makes a fork server of it: it takes the place of the C library's function
// that calls main(). So the server is the very program under test, and that knows nothing of being one.
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "tests/fork_server/command_line.h"
#include "tests/fork_server/server_variables.h"

namespace ranklab::fork_server {
namespace {

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "fork server: error: %s\n", what.c_str());
  std::_Exit(125);
}

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  const std::string out = value == nullptr ? "" : value;
  ::unsetenv(name);
  return out;
}

// As the program opens it itself (cli/common/command_module.cpp). Afterwards there must still be one thread: a fork
// copies the one that asks for it and no other.
void load(const std::string& library) {
  if (!library.empty() && ::dlopen(library.c_str(), RTLD_LAZY | RTLD_GLOBAL) == nullptr) fail(::dlerror());
  int threads = 0;
  if (DIR* folder = ::opendir("/proc/self/task")) {
    while (const dirent* entry = ::readdir(folder)) threads += entry->d_name[0] != '.';
    ::closedir(folder);
  }
  if (threads != 1) fail("loading left " + std::to_string(threads) + " threads; want 1");
}

std::map<std::string, std::string> read_while_loading(char** variables) {
  std::map<std::string, std::string> out;
  for (; *variables != nullptr; ++variables) {
    const std::string variable = *variables;
    const size_t equals = variable.find('=');
    if (is_read_while_loading(variable)) out[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  return out;
}

struct Copy {
  pid_t pid;
  int process, client;  // a pidfd, a socket
};

class Server {
 public:
  Server(int listener, std::string library) : listener_(listener), library_(std::move(library)) {}

  // Until it is killed; in a copy, until there is a command line to run.
  std::unique_ptr<CommandLine> serve() {
    while (true) {
      std::vector<pollfd> waits = {{listener_, POLLIN, 0}};
      for (const Copy& copy : copies_) {
        waits.push_back({copy.process, POLLIN, 0});
        waits.push_back({copy.client, POLLIN, 0});
      }
      if (::poll(waits.data(), waits.size(), -1) < 0) continue;
      for (size_t i = copies_.size(); i-- > 0;) {
        if (waits[2 * i + 1].revents != 0) {
          answer(copies_[i]);
          copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(i));
        } else if (waits[2 * i + 2].revents != 0) {
          forward_signal(copies_[i]);
        }
      }
      if (waits[0].revents == 0) continue;
      if (std::unique_ptr<CommandLine> line = accept()) return line;
    }
  }

 private:
  static void answer(const Copy& copy) {
    Answer answer{.forked = true, .status = 0, .cpu_s = 0};
    rusage used{};
    ::wait4(copy.pid, &answer.status, 0, &used);
    for (const timeval& time : {used.ru_utime, used.ru_stime})
      answer.cpu_s += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    write_all(copy.client, &answer, sizeof answer);
    ::close(copy.process);
    ::close(copy.client);
  }

  static void forward_signal(Copy& copy) {
    unsigned char signal = SIGKILL;  // that is what ended a client which says nothing more
    if (::recv(copy.client, &signal, 1, 0) <= 0) {
      ::close(copy.client);
      copy.client = -1;
    }
    ::kill(copy.pid, signal);
  }

  // A command line in the copy that is to run it, nothing in the server.
  std::unique_ptr<CommandLine> accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    auto line = std::make_unique<CommandLine>();
    if (client < 0 || !line->receive(client)) {
      ::close(client);
      return nullptr;
    }
    if (std::memcmp(&line->circumstances(), &circumstances_, sizeof circumstances_) != 0 ||
        read_while_loading(line->variables()) != loaded_with_) {
      const Answer become_it_yourself{};
      write_all(client, &become_it_yourself, sizeof become_it_yourself);
      ::close(client);
      return nullptr;
    }
    if (!loaded_) load(library_);
    loaded_ = true;
    const pid_t pid = ::fork();
    if (pid == 0) return line;
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (pid < 0 || process < 0) fail(std::string("no copy of the program: ") + std::strerror(errno));
    copies_.push_back({pid, process, client});
    return nullptr;
  }

  const int listener_;
  const std::string library_;
  bool loaded_ = false;
  const std::map<std::string, std::string> loaded_with_ = read_while_loading(environ);
  const Circumstances circumstances_ = circumstances_of_this_process();
  std::vector<Copy> copies_;
};

int serve_and_run(int, char**, char**) {
  const int listener = std::atoi(take_variable(kListenerVariable).c_str());
  const std::string library = take_variable(kLibraryVariable);
  take_variable("LD_PRELOAD");
  CommandLine& line = *Server(listener, library).serve().release();  // the program may use it until its very end
  line.take_on();
  return line.call(program_main);
}

}  // namespace
}  // namespace ranklab::fork_server

// NOLINTNEXTLINE: the C library's own name
extern "C" int __libc_start_main(int (*program)(int, char**, char**), int argc, char** argv, void (*init)(),
                                 void (*fini)(), void (*loader_fini)(), void* stack_end) {
  using Main = int (*)(int, char**, char**);
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  ranklab::fork_server::program_main = program;
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(ranklab::fork_server::serve_and_run, argc, argv, init, fini, loader_fini, stack_end);
}
