#include "core/base/files/unfinished_path.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace ranklab {
namespace {

constexpr size_t kSlots = 64;

// A handler reads the paths while other threads go on, so they stay where they are and nothing is freed.
struct Slot {
  enum State : int { kFree, kFilled, kReady };
  std::atomic<int> state{kFree};
  pid_t owner = 0;
  std::array<char, PATH_MAX> path = {};
};
std::array<Slot, kSlots> g_slots;

// In a child of a process that a signal is about to end, which may still be writing into the folders.
[[noreturn]] void remove_folders_after(pid_t parent, const std::array<char*, kSlots + 4>& command) {
  ::setsid();  // further signals to the terminal's processes do not end it
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, stream);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  constexpr int kTries = 5000, kTick_ns = 1'000'000;
  for (int i = 0; i < kTries && ::getppid() == parent; ++i) {
    const timespec tick{.tv_sec = 0, .tv_nsec = kTick_ns};
    ::nanosleep(&tick, nullptr);
  }
  ::execv("/bin/rm", command.data());
  ::_exit(1);
}

}  // namespace

UnfinishedPath::UnfinishedPath(const std::string& path) {
  if (path.size() >= PATH_MAX) return;
  for (size_t i = 0; i < kSlots && slot_ < 0; ++i) {
    Slot& slot = g_slots[i];
    int free = Slot::kFree;
    if (!slot.state.compare_exchange_strong(free, Slot::kFilled)) continue;
    slot.owner = ::getpid();
    std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
    slot.state = Slot::kReady;
    slot_ = static_cast<int>(i);
  }
}

UnfinishedPath::~UnfinishedPath() {
  if (slot_ >= 0) g_slots[static_cast<size_t>(slot_)].state = Slot::kFree;
}

void remove_unfinished() {
  const int saved = errno;
  char rm[] = "rm", flags[] = "-rf", end[] = "--";
  std::array<char*, kSlots + 4> command = {rm, flags, end};
  size_t words = 3;
  const pid_t self = ::getpid();
  for (Slot& slot : g_slots) {
    if (slot.state != Slot::kReady || slot.owner != self) continue;
    if (::unlink(slot.path.data()) != 0 && errno == EISDIR) command[words++] = slot.path.data();
  }
  // Not fork(), whose handlers (of LibTorch's OpenMP, for one) are not made for this moment.
  if (words > 3 && ::_Fork() == 0) remove_folders_after(self, command);
  errno = saved;
}

}  // namespace ranklab
