// The list of all backends. Each backend describes itself in its folder's backend_row.h.
#include <algorithm>
#include <string>
#include <vector>

#include "backends/cpu_sim/backend_row.h"
#include "backends/cuda/backend_row.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/backend.h"

namespace ranklab {

std::span<const Backend> backends() {
  static constexpr Backend kBackends[] = {cpu_sim::kBackendRow, kCudaBackendRow};
  return kBackends;
}

const Backend& find_backend(const std::string& name) {
  const auto found = std::ranges::find(backends(), name, &Backend::name);
  if (found != backends().end()) return *found;
  std::vector<std::string> names;
  for (const Backend& row : backends()) names.emplace_back(row.name);
  throw Error(ErrorKind::kInvalidArgument, {.where = "--backend",
                                            .what = "no such backend",
                                            .got = quote(name),
                                            .want = join(names, ", "),
                                            .fix = "use one of these, or leave it out"});
}

}  // namespace ranklab
