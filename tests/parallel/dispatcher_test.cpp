// Every dispatcher of the list on hand-made routings, against each token's experts computed where the token is:
// outputs, and the gradients of tokens, weights and experts. Experts are e -> x (e + 1) + tanh(x), so that rows that
// meet the wrong expert show.
#include "core/parallel/expert/dispatcher.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <mutex>

#include "core/parallel/expert/exchange.h"
#include "core/parallel/expert/packed_tokens.h"
#include "core/sim/aten.h"
#include "core/spec/moe_dispatcher_names.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

constexpr int64_t kDispatchExperts = 8, kDispatchHidden = 5;

struct DispatchCase {
  const char* name;
  int64_t slots;
  std::function<int64_t(int rank)> tokens;
  std::function<int64_t(int rank, int64_t token, int64_t slot)> expert;
  bool drops = false;  // every third assignment
};

std::vector<DispatchCase> dispatch_cases() {
  const auto ten = [](int) { return 10; };
  return {
      {"spread", 2, ten, [](int r, int64_t t, int64_t k) { return (3 * r + 5 * t + k) % kDispatchExperts; }},
      {"all_to_one_expert", 1, ten, [](int, int64_t, int64_t) { return 5; }},
      {"one_rank_of_experts", 2, ten, [](int, int64_t, int64_t k) { return 6 + k; }},
      {"every_expert", kDispatchExperts, ten, [](int, int64_t, int64_t k) { return kDispatchExperts - 1 - k; }},
      {"ragged", 2, [](int r) { return r == 1 ? 0 : 3 + 4 * r; },
       [](int r, int64_t t, int64_t k) { return (r + t * t + 3 * k) % kDispatchExperts; }},
      {"dropped", 3, ten, [](int r, int64_t t, int64_t k) { return (r + t + 2 * k) % kDispatchExperts; }, true},
      {"only_one_rank_has_tokens", 2, [](int r) { return r == 0 ? 12 : 0; },
       [](int, int64_t t, int64_t k) { return (t + k) % kDispatchExperts; }},
  };
}

struct Leaves {
  at::Tensor tokens, weights, scales;  // scales [E]: the experts' parameters
};

Leaves make_leaves(const DispatchCase& c, int rank) {
  const int64_t tokens = c.tokens(rank);
  const auto leaf = [](const at::Tensor& x) { return x.detach().clone().set_requires_grad(true); };
  return {leaf(golden::wave({tokens, kDispatchHidden}, 0.3 + rank)), leaf(golden::wave({tokens, c.slots}, 1.7 + rank)),
          leaf(at::arange(1, kDispatchExperts + 1, at::TensorOptions(at::kDouble)))};
}

Routing make_routing(const DispatchCase& c, int rank, const Leaves& leaves) {
  const int64_t tokens = c.tokens(rank);
  Routing routing{at::empty({tokens, c.slots}, at::kLong), leaves.weights, {}, kDispatchExperts};
  if (c.drops) routing.kept_TK = at::ones({tokens, c.slots}, at::kBool);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t k = 0; k < c.slots; ++k) {
      routing.experts_TK[t][k] = c.expert(rank, t, k);
      if (c.drops && (t + k) % 3 == 0) routing.kept_TK[t][k] = false;
    }
  }
  return routing;
}

at::Tensor expert(const at::Tensor& x, const at::Tensor& scale) { return x * scale + at::tanh(x); }

at::Tensor expected(const Routing& routing, const Leaves& leaves) {
  at::Tensor out = at::zeros_like(leaves.tokens);
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t < leaves.tokens.size(0); ++t) {
    at::Tensor sum = at::zeros({kDispatchHidden}, at::kDouble);
    for (int64_t k = 0; k < routing.experts_TK.size(1); ++k) {
      if (routing.kept_TK.defined() && !routing.kept_TK[t][k].item<bool>()) continue;
      const int64_t e = routing.experts_TK[t][k].item<int64_t>();
      sum = sum + expert(leaves.tokens[t], leaves.scales[e]) * routing.weights_TK[t][k];
    }
    rows.push_back(sum);
  }
  return rows.empty() ? leaves.tokens * 0 : at::stack(rows);
}

// The local experts over what arrived.
at::Tensor run_experts(const ExpertTrip& trip, const at::Tensor& scales, int64_t first) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (size_t e = 0; e < trip.counts().size(); ++e) {
    parts.push_back(expert(trip.rows().narrow(0, begin, trip.counts()[e]), scales[first + static_cast<int64_t>(e)]));
    begin += trip.counts()[e];
  }
  return at::cat(parts);
}

void backward_of(const at::Tensor& out) {
  const at::Tensor seed = golden::wave(out.sizes().vec(), 0.9);
  torch::autograd::backward({(out * seed).sum()}, {});
}

at::Tensor grad_of(const at::Tensor& leaf) { return leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf); }

double error(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() == 0 ? 0.0 : (a - b).abs().max().item<double>();
}

// More than any case sends an expert.
constexpr int64_t kSlots = 31;
constexpr const char* kPadded = "_padded";

// One of the list, or, with this ending, with its experts padded to kSlots rows of each rank.
class Dispatchers : public ::testing::TestWithParam<std::string> {
 protected:
  static bool padded() { return GetParam().ends_with(kPadded); }
  static std::string dispatcher_name() { return GetParam().substr(0, GetParam().find(kPadded)); }
  static Routing routing_of(const DispatchCase& c, int rank, const Leaves& leaves) {
    Routing routing = make_routing(c, rank, leaves);
    routing.slots = padded() ? kSlots : 0;
    return routing;
  }
};

TEST_P(Dispatchers, EqualExpertsWhereTheTokenIs) {
  for (const DispatchCase& c : dispatch_cases()) {
    for (const int ranks : {1, 2, 4, 8}) {
      SCOPED_TRACE(std::string(c.name) + ", ep " + std::to_string(ranks));
      std::mutex mutex;
      double worst = 0;
      int64_t arrived = 0, sent = 0;
      run_ranks({.world = ranks, .ep = ranks}, [&](RankContext& context) {
        Communicator& ep = context.comm(Axis::kEp);
        const auto dispatcher =
            make_dispatcher(dispatcher_name(), {.ep = &ep, .num_experts = kDispatchExperts, .gpus_per_node = 2});
        const Leaves mine = make_leaves(c, ep.rank()), reference = make_leaves(c, ep.rank());
        const Routing routing = routing_of(c, ep.rank(), mine);
        const auto trip = dispatcher->dispatch(mine.tokens, routing);
        const at::Tensor out = trip->combine(run_experts(*trip, mine.scales, ep.rank() * kDispatchExperts / ranks));
        const at::Tensor want = expected(make_routing(c, ep.rank(), reference), reference);
        backward_of(out);
        backward_of(want);
        // Each rank computed its own experts for everybody's tokens; the reference every expert for its own.
        const at::Tensor scales = ep.all_reduce(grad_of(mine.scales).clone());
        const at::Tensor want_scales = ep.all_reduce(grad_of(reference.scales).clone());
        const std::lock_guard lock(mutex);
        worst = std::max({worst, error(out, want), error(grad_of(mine.tokens), grad_of(reference.tokens)),
                          error(grad_of(mine.weights), grad_of(reference.weights)), error(scales, want_scales)});
        for (const int64_t count : trip->counts()) arrived += count;
        sent += routing.kept_TK.defined() ? routing.kept_TK.sum().item<int64_t>() : routing.experts_TK.numel();
      });
      EXPECT_LT(worst, 1e-12);
      EXPECT_EQ(arrived, padded() ? ranks * kDispatchExperts * kSlots : sent);
    }
  }
}

std::vector<std::pair<DispatchCase, int>> cases_on(const std::vector<int>& sizes) {
  std::vector<std::pair<DispatchCase, int>> all;
  for (const DispatchCase& c : dispatch_cases())
    for (const int ranks : sizes) all.emplace_back(c, ranks);
  return all;
}

// The work's gradients meet those of the tokens, as a shared expert's do.
TEST_P(Dispatchers, LeaveTimeForOtherWorkOnceAndChangeNothing) {
  for (const auto& [c, ranks] : cases_on({1, 4})) {
    SCOPED_TRACE(std::string(c.name) + ", ep " + std::to_string(ranks));
    run_ranks({.world = ranks, .ep = ranks}, [&](RankContext& context) {
      Communicator& ep = context.comm(Axis::kEp);
      const auto dispatcher =
          make_dispatcher(dispatcher_name(), {.ep = &ep, .num_experts = kDispatchExperts, .gpus_per_node = 2});
      const auto run = [&](const Leaves& leaves, bool meanwhile) {
        int times = 0;
        at::Tensor other;
        WorkBeside work([&] {
          other = leaves.tokens.sin();
          ++times;
        });
        const auto trip =
            dispatcher->dispatch(leaves.tokens, routing_of(c, ep.rank(), leaves), meanwhile ? &work : nullptr);
        EXPECT_EQ(times, meanwhile && ranks > 1 && GetParam() != "rdep" ? 1 : 0);
        const at::Tensor own = run_experts(*trip, leaves.scales, ep.rank() * kDispatchExperts / ranks);
        const at::Tensor out = trip->combine(own);
        work.do_forward();
        EXPECT_EQ(times, 1);
        backward_of(out + other);
        return out.detach() + other.detach();
      };
      const Leaves plain = make_leaves(c, ep.rank()), beside = make_leaves(c, ep.rank());
      EXPECT_TRUE(run(plain, false).equal(run(beside, true)));
      EXPECT_LT(error(grad_of(plain.tokens), grad_of(beside.tokens)), 1e-12);
      EXPECT_TRUE(grad_of(plain.weights).equal(grad_of(beside.weights)));
      EXPECT_TRUE(grad_of(plain.scales).equal(grad_of(beside.scales)));
    });
  }
}

std::vector<std::string> all_and_padded() {
  std::vector<std::string> names = dispatcher_names();
  for (const DispatcherText& row : kDispatcherTexts)
    if (row.pads) names.push_back(row.name + std::string(kPadded));
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Dispatchers, ::testing::ValuesIn(all_and_padded()),
                         [](const auto& row) { return row.param; });

// bf16 represents integers up to 256, fp16 up to 2048.
TEST(ExpertColumns, RepresentEveryExpertInTheTokensType) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat})
    for (const int64_t experts : {8, 256, 384, 4096, 70000}) {
      const at::Tensor index_TK = at::tensor(std::vector<int64_t>{-1, 0, 7, experts / 2, experts - 1, -1}).view({3, 2});
      const Routing routing{index_TK, at::full({3, 2}, 0.5), {}, experts};
      const ExpertColumns columns(type, routing);
      const at::Tensor packed = pack_tokens(at::ones({3, 5}, type), routing, columns);
      EXPECT_EQ(packed.scalar_type(), type);
      EXPECT_EQ(columns.hidden(packed), 5);
      EXPECT_TRUE(columns.read(packed).equal(index_TK)) << experts << " in " << c10::toString(type);
      EXPECT_EQ(unpack_tokens(packed, columns).weights_NK.size(1), 2);
    }
  EXPECT_EQ(ExpertColumns(at::kBFloat16, {at::zeros({1, 2}, at::kLong), {}, {}, 256}).count(), 2);
  EXPECT_EQ(ExpertColumns(at::kBFloat16, {at::zeros({1, 2}, at::kLong), {}, {}, 384}).count(), 4);
}

TEST(Dispatchers, TheCommandLineKnowsTheirNames) { EXPECT_EQ(moe_dispatcher_names(), dispatcher_names()); }

}  // namespace
}  // namespace ranklab
