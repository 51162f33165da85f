// Prints what a process inherited from the one that started it. Words: exit=N, kill=N, wait (until a signal comes).
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void print_signals() {
  sigset_t blocked;
  ::sigprocmask(SIG_SETMASK, nullptr, &blocked);
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler == SIG_IGN) std::printf("ignores %d\n", signal);
    if (::sigismember(&blocked, signal) == 1) std::printf("blocks %d\n", signal);
  }
}

void print_files() {
  for (int file = 0; file < 600; ++file) {
    struct stat status {};
    if (::fstat(file, &status) != 0) continue;
    std::printf("file %d %o%s\n", file, status.st_mode, ::isatty(file) != 0 ? " terminal" : "");
  }
}

void print_text(int file) {
  char bytes[256];
  const ssize_t n = ::read(file, bytes, sizeof bytes);
  if (n > 0) std::printf("text of %d: %.*s\n", file, static_cast<int>(n), bytes);
}

}  // namespace

int main(int argc, char** argv) {
  int code = 0, signal = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::printf("word '%s'\n", word.c_str());
    if (word.starts_with("exit=")) code = std::atoi(word.c_str() + 5);
    if (word.starts_with("kill=")) signal = std::atoi(word.c_str() + 5);
    if (word.starts_with("read=")) print_text(std::atoi(word.c_str() + 5));
  }
  for (const char* name : {"FACT", "OMP_NUM_THREADS", "LD_PRELOAD"})
    if (const char* value = std::getenv(name)) std::printf("%s=%s\n", name, value);
  char folder[4096];
  if (::getcwd(folder, sizeof folder) != nullptr) std::printf("in %s\n", folder);
  const mode_t mask = ::umask(0);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  std::printf("umask %o, %lu files, user %u\n", mask, static_cast<unsigned long>(files.rlim_cur), ::geteuid());
  print_signals();
  print_files();
  std::fflush(stdout);  // who is told may end this process
  if (const char* told = std::getenv("FACT_PARENT")) {
    if (FILE* file = std::fopen(told, "w")) std::fprintf(file, "%d %d", ::getpid(), ::getppid()), std::fclose(file);
  }
  if (argc > 1 && std::string(argv[1]) == "wait") ::pause();
  if (signal != 0) ::raise(signal);
  return code;
}
