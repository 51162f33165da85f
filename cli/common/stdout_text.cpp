#include "cli/common/stdout_text.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace ranklab {

std::string lost_text(FILE* out) {
  errno = 0;
  const bool flushed = std::fflush(out) == 0;
  int reason = errno;
  if (flushed && std::ferror(out) == 0) return {};
  // After an earlier failure the stream's error flag is set, but the reason is lost; writing one more byte fails again
  // and gives it.
  if (flushed) reason = ::write(::fileno(out), "\n", 1) < 0 ? errno : 0;
  return Error(ErrorKind::kOutputLost, {.where = out == stdout ? "stdout" : "stderr",
                                        .what = "cannot write all of the text",
                                        .got = reason == 0 ? "an error before" : std::strerror(reason),
                                        .fix = "make room, or send it elsewhere"})
      .what();
}

}  // namespace ranklab
