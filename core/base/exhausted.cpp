#include "core/base/exhausted.h"

#include <sys/resource.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "core/base/system.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

std::string memory_limit_text() {
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur != RLIM_INFINITY) return "ulimit -v " + std::to_string(limit.rlim_cur >> 10) + " (KiB)";
  return human_bytes(static_cast<double>(system_memory_bytes("MemAvailable:"))) + " left on this machine";
}

}  // namespace

Error memory_exhausted(size_t requested_bytes) {
  const std::string asked =
      requested_bytes > 0 ? human_bytes(static_cast<double>(requested_bytes)) + " more asked for, with " : "";
  return Error(ErrorKind::kEnvironment,
               {.where = "memory",
                .what = "memory is exhausted",
                .got = asked + memory_limit_text(),
                .want = "what the run needs (ranklab plan memory)",
                .fix = "raise ulimit -v or free memory, or lower --micro-batch-size, --seq-length or the model"});
}

Error threads_exhausted(const char* got) {
  return Error(ErrorKind::kEnvironment, {.where = "process",
                                         .what = "the system cannot create another thread",
                                         .got = got,
                                         .want = "one thread per rank, and some for messages",
                                         .fix = "use fewer ranks, or raise ulimit -u or ulimit -v"});
}

std::optional<Error> as_exhausted(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return memory_exhausted();
  if (const auto* error = dynamic_cast<const Error*>(&thrown); error != nullptr) {
    return error->kind() == ErrorKind::kEnvironment ? std::optional(*error) : std::nullopt;
  }
  // Filesystem errors are std::system_error too.
  const auto* system = dynamic_cast<const std::system_error*>(&thrown);
  const bool of_thread = system != nullptr && system->code() == std::errc::resource_unavailable_try_again &&
                         dynamic_cast<const std::filesystem::filesystem_error*>(&thrown) == nullptr;
  return of_thread ? std::optional(threads_exhausted(thrown.what())) : std::nullopt;
}

}  // namespace ranklab
