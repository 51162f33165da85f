#include "cli/process_limits.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "core/base/error.h"
#include "core/base/process_limit.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr rlim_t kLeastStackBytes = 512 << 10, kThreadStackBytes = 8 << 20;
// The address space that loading LibTorch needs (0.6 GiB), and some for the run.
constexpr rlim_t kLeastAddressBytes = 800 << 20;

// Allocates nothing, because there may be no memory left.
[[noreturn]] void leave(ErrorKind kind, const char* text) {
  std::fputs("ranklab: error: ", stderr);
  std::fputs(text, stderr);
  std::fputs("\n", stderr);
  ::_exit(exit_code(kind));
}

[[noreturn]] void leave_by_name() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    leave(ErrorKind::kEnvironment,
          "[memory] memory is exhausted; want what the run needs (ranklab plan memory); do: raise ulimit -v or free "
          "memory, or lower --micro-batch-size, --seq-length or the model");
  } catch (const Error& error) {
    leave(error.kind(), error.what());
  } catch (const std::exception& error) {
    leave(ErrorKind::kInternal, error.what());
  } catch (...) {
    leave(ErrorKind::kInternal, "an exception that is not a std::exception");
  }
  leave(ErrorKind::kInternal, "the program cannot continue");
}

// Runs before the constructors of any library, because one of LibTorch's throws an exception that nobody can catch if
// there is too little address space. Uses only C library functions that need no initialization.
void refuse_small_address_space(int, char**, char**) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kLeastAddressBytes) return;
  std::array<char, 24> digits{};
  size_t at = digits.size();
  rlim_t kib = limit.rlim_cur >> 10;
  do {
    digits[--at] = static_cast<char>('0' + kib % 10);
    kib /= 10;
  } while (kib > 0);
  const auto say = [](const char* text, size_t size) {
    if (::write(STDERR_FILENO, text, size) < 0) ::_exit(3);
  };
  constexpr char kBegin[] = "ranklab: error: [process] too little address space to load LibTorch; got ulimit -v ";
  constexpr char kEnd[] = "; want 819200 (KiB) or more; do: ulimit -v unlimited\n";
  say(kBegin, sizeof kBegin - 1);
  say(digits.data() + at, digits.size() - at);
  say(kEnd, sizeof kEnd - 1);
  ::_exit(3);
}

// If a standard stream was closed by the process that started this one, the next opened file would take its descriptor
// and receive what is printed. Opened read-only, so that printing fails as on a closed stream.
void hold_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) static_cast<void>(::open("/dev/null", O_RDONLY));
}

}  // namespace

// NOLINTNEXTLINE: the loader finds it by its section
__attribute__((section(".preinit_array"), used)) void (*const kBeforeLibraries)(int, char**,
                                                                                char**) = refuse_small_address_space;

void meet_process_limits() {
  hold_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(leave_by_name);
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) == 0) {
    ::pthread_attr_setstacksize(&attributes, kThreadStackBytes);
    ::pthread_setattr_default_np(&attributes);
    ::pthread_attr_destroy(&attributes);
  }
  raise_descriptor_limit();
  const rlim_t stack_bytes = raise_limit(RLIMIT_STACK, kThreadStackBytes);
  RANKLAB_CHECK(stack_bytes >= kLeastStackBytes, ErrorKind::kEnvironment, .where = "process",
                .what = "the stack is too small", .got = "ulimit -s " + std::to_string(stack_bytes >> 10),
                .want = std::to_string(kLeastStackBytes >> 10) + " (KiB) or more", .fix = "ulimit -s 8192");
}

}  // namespace ranklab
