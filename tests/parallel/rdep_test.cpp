// The dispatcher that writes into peers' memory: arrival order changes no bit, and worlds without such memory are
// refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/parallel/expert/dispatcher.h"
#include "core/sim/aten.h"
#include "tests/golden/golden.h"
#include "tests/parallel/run_ranks.h"

namespace ranklab {
namespace {

constexpr int kRdepRanks = 4;
constexpr int64_t kRdepExperts = 8, kRdepHidden = 5, kRdepTokens = 23;

// Writes row by row, in a different order each time, and lets the other ranks run in between.
class Shuffled final : public PeerMemory {
 public:
  Shuffled(PeerMemoryPtr inner, uint32_t seed) : inner_(std::move(inner)), random_(seed) {}
  const Group& group() const override { return inner_->group(); }
  void put(int peer, const at::Tensor& rows, PutNote) override {
    for (int64_t i = 0; i < rows.size(0); ++i) waiting_.emplace_back(peer, rows.narrow(0, i, 1).contiguous());
  }
  void finish(std::source_location) override {
    std::shuffle(waiting_.begin(), waiting_.end(), random_);
    for (const auto& [peer, row] : waiting_) {
      if (random_() % 3 == 0) std::this_thread::yield();
      inner_->put(peer, row);
    }
    waiting_.clear();
    inner_->finish();
  }
  Delivery take() override { return inner_->take(); }

 private:
  PeerMemoryPtr inner_;
  std::mt19937 random_;
  std::vector<std::pair<int, at::Tensor>> waiting_;
};

struct Result {
  at::Tensor rows, out, token_grad, weight_grad;
};

Routing routing_of(int rank, const at::Tensor& weights_TK) {
  at::Tensor experts = at::empty({kRdepTokens, 3}, at::kLong);
  for (int64_t t = 0; t < kRdepTokens; ++t) {
    for (int64_t k = 0; k < 3; ++k) experts[t][k] = (rank + t * t + 3 * k) % kRdepExperts;
  }
  return {.experts_TK = experts, .weights_TK = weights_TK, .kept_TK = {}, .num_experts = kRdepExperts};
}

// seed 0: as the ranks dispatched.
std::vector<Result> dispatched(const std::string& dispatcher_name, uint32_t seed) {
  std::vector<Result> results(kRdepRanks);
  run_ranks({.world = kRdepRanks, .ep = kRdepRanks}, [&](RankContext& context) {
    Communicator& ep = context.comm(Axis::kEp);
    DispatcherContext dispatcher_context{.ep = &ep, .num_experts = kRdepExperts};
    if (seed != 0)
      dispatcher_context.memory =
          std::make_shared<Shuffled>(peer_memory_of(ep), seed * 100 + static_cast<uint32_t>(ep.rank()));
    const auto dispatcher = make_dispatcher(dispatcher_name, dispatcher_context);
    const auto options = at::TensorOptions(at::kFloat);
    const at::Tensor tokens = golden::wave({kRdepTokens, kRdepHidden}, ep.rank()).to(options).set_requires_grad(true);
    const at::Tensor weights = golden::wave({kRdepTokens, 3}, 1.5 * ep.rank()).to(options).set_requires_grad(true);
    const auto trip = dispatcher->dispatch(tokens, routing_of(ep.rank(), weights));
    const at::Tensor out = trip->combine(at::tanh(trip->rows() * (1.0 + ep.rank())));
    torch::autograd::backward({(out * golden::wave({kRdepTokens, kRdepHidden}, 0.4).to(options)).sum()}, {});
    results[static_cast<size_t>(ep.rank())] = {trip->rows().detach(), out.detach(), tokens.grad(), weights.grad()};
  });
  return results;
}

TEST(Rdep, ArrivalOrderChangesNoBit) {
  const std::vector<Result> plain = dispatched("rdep", 0), reference = dispatched("alltoall", 0);
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Result> shuffled = dispatched("rdep", seed);
    for (size_t rank = 0; rank < kRdepRanks; ++rank) {
      EXPECT_TRUE(at::equal(shuffled[rank].rows, plain[rank].rows));
      EXPECT_TRUE(at::equal(shuffled[rank].out, plain[rank].out));
      EXPECT_TRUE(at::equal(shuffled[rank].token_grad, plain[rank].token_grad));
      EXPECT_TRUE(at::equal(shuffled[rank].weight_grad, plain[rank].weight_grad));
    }
  }
  for (size_t rank = 0; rank < kRdepRanks; ++rank) {
    EXPECT_TRUE(at::equal(plain[rank].rows, reference[rank].rows)) << "by expert, then source, then token";
    EXPECT_TRUE(at::allclose(plain[rank].out, reference[rank].out, 1e-5, 1e-6));
  }
}

// Hands on the verbs, and nothing else.
class Plain final : public Communicator {
 public:
  explicit Plain(Communicator& inner) : Communicator(inner.group()), inner_(inner) {}
  WorkPtr post(Call call) override { return inner_.post(std::move(call)); }

 private:
  Communicator& inner_;
};

TEST(Rdep, IsRefusedWhereRanksShareNoMemory) {
  run_ranks({.world = 2, .ep = 2}, [](RankContext& context) {
    Plain ep(context.comm(Axis::kEp));
    try {
      make_dispatcher("rdep", {.ep = &ep, .num_experts = kRdepExperts});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      EXPECT_THAT(error.what(), testing::HasSubstr("do not share"));
      EXPECT_THAT(error.what(), testing::HasSubstr("--moe-token-dispatcher-type alltoall"));
    }
  });
}

}  // namespace
}  // namespace ranklab
