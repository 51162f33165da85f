// The backward of each collective must be its adjoint: sum over ranks of <A x, y> = sum over ranks of <x, A^T y>.
#include "core/parallel/tensor/collectives.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <functional>

#include "core/parallel/expert/exchange.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

using golden::wave;
using Verb1 = std::function<at::Tensor(const at::Tensor&, Communicator&)>;

// `replicated_input` / `replicated_output`: the tensor is one logical tensor on all ranks, so its inner product counts
// once, and the gradient that each rank sees is that of the one tensor.
struct Case {
  const char* name;
  Verb1 verb;
  bool replicated_input, replicated_output;
};

std::vector<Case> cases() {
  return {{"copy_to_tp", [](auto& x, auto& tp) { return copy_to_tp(x, tp); }, true, false},
          {"reduce_from_tp", [](auto& x, auto& tp) { return reduce_from_tp(x, tp); }, false, true},
          {"gather_from_sp", [](auto& x, auto& tp) { return gather_from_sp(x, tp); }, false, false},
          {"reduce_scatter_to_sp", [](auto& x, auto& tp) { return reduce_scatter_to_sp(x, tp); }, false, false},
          {"exchange_rows", [](auto& x, auto& tp) { return exchange_rows(x, tp, {}, {}, dispatch_exchange({})); },
           false, false}};
}

double over_ranks(at::Tensor value, bool replicated, Communicator& tp) {
  if (replicated) return value.item<double>();
  return tp.all_reduce(value.view({1})).item<double>();
}

TEST(AutogradCollectives, BackwardIsTheAdjoint) {
  for (const int size : {1, 2, 4}) {
    for (const Case& c : cases()) {
      run_ranks(dims_of(1, size), [&](RankContext& context) {
        Communicator& tp = context.comm(Axis::kTp);
        const double rank = tp.rank();
        const at::Tensor x = wave({8, 3}, c.replicated_input ? 0.1 : 0.1 + rank).requires_grad_(true);
        const at::Tensor y = c.verb(x, tp);
        const at::Tensor seed = wave(y.sizes(), c.replicated_output ? 0.2 : 0.2 + rank);
        torch::autograd::backward({y}, {seed});
        const double forward = over_ranks((y.detach() * seed).sum(), c.replicated_output, tp);
        const double backward = over_ranks((x.detach() * x.grad()).sum(), c.replicated_input, tp);
        EXPECT_NEAR(forward, backward, 1e-12 * (1 + std::abs(forward))) << c.name << " over " << size;
      });
    }
  }
}

TEST(AutogradCollectives, ForwardValues) {
  run_ranks(dims_of(1, 2), [](RankContext& context) {
    Communicator& tp = context.comm(Axis::kTp);
    const at::Tensor mine = at::full({2}, 1.0 + tp.rank(), at::kDouble);
    const auto values = [](std::vector<double> v) { return at::tensor(v, at::kDouble); };
    EXPECT_TRUE(at::equal(reduce_from_tp(mine, tp), values({3, 3})));
    EXPECT_TRUE(at::equal(mine, at::full({2}, 1.0 + tp.rank(), at::kDouble))) << "the input must survive";
    EXPECT_TRUE(at::equal(gather_from_sp(mine, tp), values({1, 1, 2, 2})));
    EXPECT_TRUE(at::equal(reduce_scatter_to_sp(mine, tp), values({3})));
  });
}

// Rank r sends r + d rows to rank d (0 from 0 to 0): uneven, with an empty split, and one rank without any rows.
TEST(AutogradCollectives, UnevenAllToAllRoutesGradientsBack) {
  run_ranks(dims_of(1, 3), [](RankContext& context) {
    Communicator& group = context.comm(Axis::kTp);
    const int64_t r = group.rank();
    const std::vector<int64_t> send = r == 2 ? std::vector<int64_t>{0, 0, 0} : std::vector<int64_t>{r, r + 1, r + 2};
    std::vector<int64_t> recv{r, 1 + r, 0};
    const int64_t rows = send[0] + send[1] + send[2];
    const at::Tensor x = (wave({rows, 2}, 0.5) + static_cast<double>(r)).requires_grad_(true);
    const at::Tensor y = exchange_rows(x, group, send, recv, dispatch_exchange({}));
    ASSERT_EQ(y.size(0), recv[0] + recv[1] + recv[2]);
    torch::autograd::backward({y}, {y.detach() * 2.0});
    EXPECT_TRUE(at::equal(x.grad(), x.detach() * 2.0));
  });
}

TEST(OwnRows, RefusesUnevenSequencesNamingBothNumbers) {
  run_ranks(dims_of(1, 2), [](RankContext& context) {
    try {
      own_rows(at::ones({5, 1}), context.comm(Axis::kTp));
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("5 positions over 2 ranks"), std::string::npos);
    }
  });
}

}  // namespace
}  // namespace ranklab
