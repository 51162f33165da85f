#include "core/parallel/expert/dispatcher.h"

#include "core/base/named_rows.h"

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

std::vector<std::string> dispatcher_names() { return row_names(kDispatchers); }

std::unique_ptr<TokenDispatcher> make_dispatcher(const std::string& name, const DispatcherContext& context) {
  return named_row(kDispatchers, name,
                   {.where = "experts", .what = "no such token dispatcher", .fix = "use one of them"})
      .make(context);
}

}  // namespace ranklab
