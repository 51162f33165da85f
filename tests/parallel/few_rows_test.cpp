// Routers send some ranks one token or none. Every dispatcher, in every type and every format that tokens travel in,
// against plain rows over alltoall: packing loses nothing of what round_rows() gave, so that both are equal.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "core/parallel/expert/dispatcher.h"
#include "core/parallel/expert/wire_rows.h"
#include "core/precision/recipe.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

constexpr int kFewRanks = 4;
// A row of 8 bits and its scales is not a multiple of 8 bytes.
constexpr int64_t kFewHidden = 160;

struct FewWire {
  std::string name;
  TensorPrecision precision = {};
  at::ScalarType type = at::kFloat;
};

std::vector<FewWire> few_wires() {
  std::vector<FewWire> wires = {{"fp32"}, {"fp64", {}, at::kDouble}, {"bf16", {}, at::kBFloat16}};
  for (const PrecisionRecipe& recipe : precision_recipes())
    if (recipe.dispatch.quantized()) wires.push_back({recipe.name, recipe.dispatch, at::kBFloat16});
  return wires;
}

struct FewTensors {
  at::Tensor rows, out, token_grad;
};

// Rank 0 has all the tokens; each goes to one expert, of the last rank.
std::vector<FewTensors> few_tokens(const std::string& name, int64_t count, const FewWire& wire, bool packed) {
  std::vector<FewTensors> results(kFewRanks);
  run_ranks({.world = kFewRanks, .ep = kFewRanks}, [&](RankContext& context) {
    Communicator& ep = context.comm(Axis::kEp);
    const int64_t mine = ep.rank() == 0 ? count : 0;
    const auto dispatcher = make_dispatcher(
        name, {.ep = &ep, .num_experts = kFewRanks, .wire = packed ? wire.precision : TensorPrecision{}});
    const at::Tensor tokens = golden::wave({mine, kFewHidden}, 0.3).to(wire.type).set_requires_grad(true);
    const at::Tensor weights = at::ones({mine, 1}, at::TensorOptions(wire.type));
    const Routing routing{.experts_TK = at::full({mine, 1}, kFewRanks - 1, at::kLong),
                          .weights_TK = weights,
                          .kept_TK = {},
                          .num_experts = kFewRanks};
    const auto trip = dispatcher->dispatch(round_rows(tokens, wire.precision), routing);
    const at::Tensor out = trip->combine(trip->rows() * 2);
    torch::autograd::backward({out.sum()}, {});
    results[static_cast<size_t>(ep.rank())] = {trip->rows().detach(), out.detach(), tokens.grad()};
  });
  return results;
}

TEST(FewRows, OneRowAndNoneArriveInEveryFormat) {
  const std::vector<FewWire> wires = few_wires();
  EXPECT_GE(wires.size(), 5u);
  for (const FewWire& wire : wires) {
    for (const int64_t count : {0, 1, 2}) {
      const std::vector<FewTensors> want = few_tokens("alltoall", count, wire, false);
      for (const std::string& name : dispatcher_names()) {
        SCOPED_TRACE(name + ", " + wire.name + ", rows " + std::to_string(count));
        const std::vector<FewTensors> got = few_tokens(name, count, wire, true);
        for (size_t rank = 0; rank < kFewRanks; ++rank) {
          EXPECT_EQ(got[rank].rows.size(0), rank + 1 == kFewRanks ? count : 0);
          EXPECT_TRUE(at::equal(got[rank].rows, want[rank].rows));
          EXPECT_TRUE(at::equal(got[rank].out, want[rank].out));
          EXPECT_EQ(got[rank].token_grad.defined(), want[rank].token_grad.defined());
          if (want[rank].token_grad.defined()) {
            EXPECT_TRUE(at::equal(got[rank].token_grad, want[rank].token_grad));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ranklab
