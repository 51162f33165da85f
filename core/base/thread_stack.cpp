#include "core/base/thread_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr int kMostFrames = 48;
constexpr std::chrono::milliseconds kPatience(1000), kPoll(1);

struct Answer {
  std::atomic<pthread_t> asked{};
  std::array<void*, kMostFrames> frames{};
  std::atomic<int> count{-1};  // -1: not answered yet
};
Answer answer;
std::mutex asking;

void write_answer(int) {
  if (::pthread_equal(answer.asked, ::pthread_self()) == 0) return;  // an answer to an earlier question, too late
  const int saved = errno;
  answer.count = ::backtrace(answer.frames.data(), kMostFrames);
  errno = saved;
}

int signal_number() { return SIGRTMIN + 6; }

bool listen() {
  void* unused = nullptr;
  ::backtrace(&unused, 1);  // loads the unwinder now, because a signal handler must not
  struct sigaction action = {};
  action.sa_handler = write_answer;
  action.sa_flags = SA_RESTART;
  return ::sigaction(signal_number(), &action, nullptr) == 0;
}

// The name without parameters, return type and template arguments, as a reader would look for it.
std::string function_name(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> full(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  if (status != 0) return mangled;
  std::string name;
  int depth = 0;
  for (const char c : std::string_view(full.get())) {
    if (c == '(' && depth == 0 && !name.ends_with("operator") && !name.empty()) break;
    if (c == '<') ++depth;
    if (depth == 0) name += c;
    if (c == '>') --depth;
    if (c == ' ' && depth == 0) name.clear();
  }
  return name.empty() ? full.get() : name;
}

std::string frame_name(void* address) {
  Dl_info where = {};
  ElfW(Sym)* symbol = nullptr;
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (::dladdr1(address, &where, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0 || where.dli_fname == nullptr)
    return strprintf("0x%zx", at);
  // The nearest exported symbol may be another function.
  const bool inside = symbol != nullptr && where.dli_sname != nullptr &&
                      at - reinterpret_cast<uintptr_t>(where.dli_saddr) < symbol->st_size;
  if (inside) return function_name(where.dli_sname);
  return std::filesystem::path(where.dli_fname).filename().string() +
         strprintf("+0x%zx", at - reinterpret_cast<uintptr_t>(where.dli_fbase));
}

std::vector<std::string> stack_of(pthread_t thread) {
  constexpr size_t kTold = 8;
  constexpr int kOwn = 2;  // the signal handler and the frame that called it
  static const bool listens = listen();
  const std::lock_guard lock(asking);
  answer.asked = thread;
  answer.count = -1;
  if (!listens || ::pthread_kill(thread, signal_number()) != 0) return {};
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (answer.count < 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPoll);
  std::vector<std::string> names;
  for (int i = kOwn; i < answer.count && names.size() < kTold; ++i)
    names.push_back(frame_name(answer.frames[static_cast<size_t>(i)]));
  return names;
}

}  // namespace

std::string where_thread_is(pthread_t thread) {
  const std::vector<std::string> stack = stack_of(thread);
  return stack.empty() ? "" : "it is in " + join(std::span(stack), ", called by ");
}

void report_where_thread_is(const std::string& who, pthread_t thread) {
  if (const std::string where = where_thread_is(thread); !where.empty())
    std::fprintf(stderr, "ranklab: %s does not return: %s\n", who.c_str(), where.c_str());
}

}  // namespace ranklab
