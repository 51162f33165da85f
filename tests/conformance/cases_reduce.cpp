#include <gtest/gtest.h>

#include "tests/conformance/cases.h"

namespace ranklab::conformance {
namespace {

std::vector<ReduceOp> ops_of(at::ScalarType dtype) {
  if (!at::isFloatingType(dtype)) return {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax};
  return {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin, ReduceOp::kMax};
}

std::vector<at::Tensor> everyones(int n, int64_t count, at::ScalarType dtype) {
  std::vector<at::Tensor> out;
  for (int r = 0; r < n; ++r) out.push_back(values(r, count, dtype));
  return out;
}

}  // namespace

void all_reduce_case(const Backend& backend) {
  for_each_setting(backend, [](const Member& m, const Setting& s, const Backend& b) {
    for (const ReduceOp op : ops_of(s.dtype)) {
      const at::Tensor tensor = m.mine(s.count, s.dtype);
      const at::Tensor got = m.comm.all_reduce(tensor, op);
      EXPECT_EQ(got.data_ptr(), tensor.data_ptr()) << "all_reduce works in place";
      expect_same(got, reduced(everyones(m.size(), s.count, s.dtype), op), b, true,
                  "all_reduce " + std::string(name(op)) + " over " + std::to_string(m.size()));
    }
  });
}

void reduce_scatter_case(const Backend& backend) {
  for_each_setting(backend, [](const Member& m, const Setting& s, const Backend& b) {
    const int64_t n = m.size();
    for (const ReduceOp op : ops_of(s.dtype)) {
      const at::Tensor input = m.mine(n * s.count, s.dtype);
      const at::Tensor want = reduced(everyones(m.size(), n * s.count, s.dtype), op);
      const at::Tensor got = m.comm.reduce_scatter(input, op);
      expect_same(got, want.slice(0, m.rank() * s.count, (m.rank() + 1) * s.count), b, true, "reduce_scatter");
      expect_same(input, values(m.rank(), n * s.count, s.dtype), b, false, "input of reduce_scatter");
    }
  });
}

void composition_case(const Backend& backend) {
  if (!backend.canonical_order) GTEST_SKIP() << "only promised with the canonical order";
  for_each_setting(backend, [](const Member& m, const Setting& s, const Backend& b) {
    const int64_t total = m.size() * s.count;
    const at::Tensor mine = m.mine(total, s.dtype);
    const at::Tensor composed = m.comm.all_gather(m.comm.reduce_scatter(mine)).cpu();
    expect_same(m.comm.all_reduce(mine.clone()), composed, b, false, "all_reduce against its two halves");
  });
}

// Large enough to be cut into pieces that several threads take.
void large_all_reduce_case(const Backend& backend) {
  const int size = backend.sizes.back();
  constexpr int64_t kCount = 300'007;
  run_world(backend, size, [&](const Member& m) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor got = m.comm.all_reduce(m.mine(kCount, dtype));
      expect_same(got, reduced(everyones(size, kCount, dtype), ReduceOp::kSum), backend, true, "large all_reduce");
    }
    const at::Tensor gathered = m.comm.all_gather(m.mine(kCount, at::kFloat));
    expect_same(gathered, at::cat(everyones(size, kCount, at::kFloat)), backend, false, "large all_gather");
  });
}

}  // namespace ranklab::conformance
