#include "core/parallel/expert/dispatcher.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

// Each is defined in its NAME_dispatcher.cpp.
using MakeDispatcher = std::unique_ptr<TokenDispatcher>(const DispatcherContext&);
MakeDispatcher make_all_to_all_dispatcher, make_all_gather_dispatcher, make_dedup_dispatcher, make_rdep_dispatcher;

namespace {

struct Row {
  const char* name;
  MakeDispatcher* make;
};
constexpr Row kDispatchers[] = {
    {"alltoall", make_all_to_all_dispatcher},
    {"allgather", make_all_gather_dispatcher},
    {"dedup", make_dedup_dispatcher},
    {"rdep", make_rdep_dispatcher},
};

}  // namespace

std::vector<std::string> dispatcher_names() {
  std::vector<std::string> names;
  for (const Row& row : kDispatchers) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<TokenDispatcher> make_dispatcher(const std::string& name, const DispatcherContext& context) {
  for (const Row& row : kDispatchers) {
    if (name == row.name) return row.make(context);
  }
  const std::string nearest = nearest_name(name, dispatcher_names());
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "experts",
               .what = "no such token dispatcher",
               .got = quote(name),
               .want = "one of " + join(dispatcher_names(), ", "),
               .fix = nearest.empty() ? "use one of them" : "did you mean " + quote(nearest) + "?"});
}

}  // namespace ranklab
