#include "core/base/process_limit.h"

#include <algorithm>

#include "core/base/error.h"

namespace ranklab {

rlim_t raise_limit(int resource, rlim_t wanted) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlimit higher = {std::min(limit.rlim_max, wanted), limit.rlim_max};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &higher) == 0) return higher.rlim_cur;
  return limit.rlim_cur;
}

rlim_t raise_descriptor_limit() {
  constexpr rlim_t kPlenty = 1 << 16;
  return raise_limit(RLIMIT_NOFILE, kPlenty);
}

void require_descriptors(int count, const std::string& where, const std::string& what_for) {
  const rlim_t most = std::max(raise_descriptor_limit(), raise_limit(RLIMIT_NOFILE, static_cast<rlim_t>(count)));
  RANKLAB_CHECK(most >= static_cast<rlim_t>(count), ErrorKind::kEnvironment, .where = where,
                .what = "too few file descriptors for " + what_for, .got = "ulimit -n " + std::to_string(most),
                .want = std::to_string(count) + " or more",
                .fix = "ulimit -n " + std::to_string(std::max(count, 1024)) + ", or fewer ranks");
}

}  // namespace ranklab
