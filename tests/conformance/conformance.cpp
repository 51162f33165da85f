#include "tests/conformance/conformance.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "core/comm/tree_reduce.h"
#include "core/sim/op_cost.h"
#include "tests/conformance/cases.h"

namespace ranklab::conformance {
namespace {

class CaseTest : public testing::Test {
 public:
  CaseTest(void (*body)(const Backend&), Backend backend) : body_(body), backend_(std::move(backend)) {}
  void TestBody() override { body_(backend_); }

 private:
  void (*body_)(const Backend&);
  Backend backend_;
};

struct Row {
  const char* name;
  void (*body)(const Backend&);
};

constexpr Row kCases[] = {
    {"AllReduce", all_reduce_case},
    {"ReduceScatter", reduce_scatter_case},
    {"AllReduceIsAllGatherOfReduceScatter", composition_case},
    {"LargeAllReduce", large_all_reduce_case},
    {"AllGather", all_gather_case},
    {"AllToAll", all_to_all_case},
    {"Broadcast", broadcast_case},
    {"SendRecv", send_recv_case},
    {"Lanes", lanes_case},
    {"Barrier", barrier_case},
    {"NonContiguous", non_contiguous_case},
    {"UnevenAndEmptyRows", uneven_and_empty_rows_case},
    {"Async", async_case},
    {"SeveralAxesAtOnce", several_axes_case},
    {"RandomDelaysGiveTheSameBits", random_delays_case},
};

}  // namespace

void register_suite(const Backend& backend) {
  const std::string suite = "Conformance_" + backend.name;
  for (const Row& row : kCases) {
    testing::RegisterTest(suite.c_str(), row.name, nullptr, nullptr, __FILE__, __LINE__,
                          [row, backend]() -> testing::Test* { return new CaseTest(row.body, backend); });
  }
}

Group whole_world(const Endpoint& endpoint) {
  Group group;
  group.global_ranks.resize(static_cast<size_t>(endpoint.world_size()));
  std::iota(group.global_ranks.begin(), group.global_ranks.end(), 0);
  group.group_rank = endpoint.global_rank();
  return group;
}

void run_world(const Backend& backend, int size, const std::function<void(const Member&)>& body) {
  backend.make_world(size)->run([&](Endpoint& endpoint) {
    const CommunicatorPtr comm = endpoint.communicator(whole_world(endpoint));
    body({*comm, endpoint.device()});
  });
}

void for_each_setting(const Backend& backend, const CaseBody& body) {
  for (const int size : backend.sizes) {
    run_world(backend, size, [&](const Member& m) {
      for (const int64_t count : backend.counts)
        for (const at::ScalarType dtype : backend.dtypes) body(m, {count, dtype}, backend);
    });
  }
}

at::Tensor values(int rank, int64_t count, at::ScalarType dtype, int64_t offset) {
  at::Tensor out = at::empty({count}, at::kDouble);
  auto* data = out.data_ptr<double>();
  for (int64_t i = 0; i < count; ++i) {
    // An integer hash spread over [-500, 500], with a fraction that no format holds exactly.
    const int64_t hash = ((i + offset) * 7919 + rank * 104729 + 13) % 1009;
    data[i] = static_cast<double>(hash - 504) + (dtype == at::kLong ? 0.0 : 1.0 / 3.0 / (rank + 1));
  }
  return out.to(dtype);
}

at::Tensor reduced(const std::vector<at::Tensor>& inputs, ReduceOp op) {
  at::Tensor out = at::empty_like(inputs[0]);
  std::vector<const void*> pointers;
  for (const at::Tensor& input : inputs) pointers.push_back(input.data_ptr());
  tree_reduce_reference({dtype_of(out.scalar_type()), op, true}, pointers, out.data_ptr(), out.numel());
  return out;
}

void expect_same(const at::Tensor& got, const at::Tensor& want, const Backend& backend, bool is_reduction,
                 const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const at::Tensor here = got.cpu();
  const bool exact = !is_reduction || backend.canonical_order || !at::isFloatingType(want.scalar_type());
  const double tolerance = want.scalar_type() == at::kBFloat16 ? 2e-2 : want.scalar_type() == at::kHalf ? 2e-3 : 1e-5;
  const bool same = exact ? at::equal(here, want) : at::allclose(here, want, tolerance, tolerance * 500);
  EXPECT_TRUE(same) << backend.name << ": " << what << ", " << want.numel() << " elements of " << want.scalar_type();
}

}  // namespace ranklab::conformance
