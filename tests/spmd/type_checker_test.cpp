// One rank's tensors, followed by operators, autograd functions and the parameters' way to the optimizer.
#include "core/spmd/type_checker.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/comm/call.h"
#include "core/comm/group.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

class Checker : public testing::Test {
 protected:
  // dp 2 x tp 2
  DeviceMesh mesh{{.world = 4, .tp = 2, .dp = 2}};
  std::shared_ptr<TypeReport> report = std::make_shared<TypeReport>();
  TypeChecker checker{RankPartitions(mesh), {}, 0, report};

  static at::Tensor numbers() { return at::ones({4, 4}); }
  at::Tensor partial_over(Axis axis) {
    const at::Tensor x = numbers();
    checker.is_same_over(x, {});
    checker.is_partial_over(x, axis);
    return x;
  }
  at::Tensor same_over(std::initializer_list<Axis> axes) {
    const at::Tensor x = numbers();
    checker.is_same_over(x, axes);
    return x;
  }
  void reduce(const at::Tensor& x, Axis axis) {
    checker.called({.verb = Verb::kAllReduce, .input = x, .output = x}, mesh.group(axis, 0));
  }
  // "tp" of the first finding, "" without one.
  std::string axis_found() const {
    return report->findings().empty() ? "" : std::string(name(report->findings().front().axis));
  }
};

TEST_F(Checker, TypesGoThroughOperatorsAndViews) {
  const at::Tensor x = partial_over(Axis::kTp);
  const at::Tensor linear = (x * 2.0).t().reshape({-1}).narrow(0, 1, 3).clone();
  EXPECT_EQ(axis_found(), "");
  at::silu(linear);
  ASSERT_EQ(axis_found(), "tp");
  EXPECT_EQ(report->findings().front().what, "aten::silu");
}

// Inside a scope without cost, the clock has disabled the reports of operators.
TEST(CheckerInAScope, IsToldOfOperators) {
  VirtualClock clock;
  const HardwareProfile profile;
  const OpObserver observer(profile, clock);
  const NoCostScope free;
  at::Tensor x = at::ones({4});
  for (int i = 0; i < 5; ++i) x = x * 2.0;
  const DeviceMesh mesh({.world = 2, .tp = 2});
  const auto report = std::make_shared<TypeReport>();
  TypeChecker checker{RankPartitions(mesh), {}, 0, report};
  checker.is_same_over(x, {});
  checker.is_partial_over(x, Axis::kTp);
  at::silu(x);
  EXPECT_EQ(report->findings().size(), 1);
}

// An operator with its overload, on p: partial over tp; c: the same over tp; s: that of one number; m: a mask; 2: a
// number; [ ]: a list. Apart by semicolons.
constexpr const char* kWrong =
    "div.Tensor cp; div.Tensor pp; div_.Tensor cp; reciprocal p; pow.Tensor_Scalar p2; pow.Tensor_Tensor cp; "
    "pow.Scalar 2p; max p; max.other cp; amax p; argmax p; maximum pc; minimum cp; gt.Scalar p2; lt.Tensor cp; "
    "eq.Tensor pc; isfinite p; sign p; round p; relu p; softplus p; cos p; prod p; var p; linalg_vector_norm "
    "p; silu_backward cp; sigmoid_backward pp; addmm cpc; addmm ccp; addmm pcc; addcmul cpc; addcdiv ppp; "
    "addcdiv ccp; lerp.Tensor ccp; where.self mpc; masked_fill.Tensor pms; cat [pc]; mul.Tensor pp; "
    "fmod.Tensor cp";
constexpr const char* kRight =
    "div.Tensor pc; div_.Tensor pc; div.Scalar p2; silu_backward pc; addmm ppc; addcmul ppc; addcdiv ppc; "
    "lerp.Tensor ppc; where.self mpp; masked_fill.Scalar pm2; cat [pp]; stack [pp]; mul.Tensor pc; sum p; mean "
    "p; neg p; cumsum p; transpose.int p; div.Tensor cc; maximum cc; pow.Tensor_Scalar c2";

class EachOperator : public Checker {
 protected:
  c10::IValue operand(char letter) {
    switch (letter) {
      case 'p':
        return partial_over(Axis::kTp);
      case 'c':
        return same_over({Axis::kTp, Axis::kDp});
      case 's': {
        const at::Tensor one = at::ones({});
        checker.is_same_over(one, {Axis::kTp, Axis::kDp});
        return one;
      }
      case 'm':
        return at::ones({4, 4}, at::kBool);
      default:
        return 2;
    }
  }
  static std::vector<std::string> cases(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string one; std::getline(in >> std::ws, one, ';');) all.push_back(one);
    return all;
  }
  void run(const std::string& one) {
    const size_t space = one.find(' '), dot = std::min(one.find('.'), space);
    const std::string name = "aten::" + one.substr(0, dot), operands = one.substr(space + 1),
                      overload = dot < space ? one.substr(dot + 1, space - dot - 1) : "";
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
    std::vector<c10::IValue> stack;
    c10::List<at::Tensor> list;
    bool listed = false;
    for (const char letter : operands) {
      if (letter == '[' || letter == ']')
        listed = true;
      else if (listed)
        list.push_back(operand(letter).toTensor());
      else
        stack.push_back(operand(letter));
    }
    if (listed) stack.emplace_back(list);
    const auto& arguments = op.schema().arguments();
    for (size_t i = stack.size(); i < arguments.size(); ++i) {
      if (arguments[i].default_value())
        stack.push_back(*arguments[i].default_value());
      else
        stack.emplace_back(int64_t{i == 1 ? 0 : 1});  // dims
    }
    op.callBoxed(&stack);
  }
};

TEST_F(EachOperator, IsWrongOfAPartialSumWhereItIsNotLinearInIt) {
  for (const std::string& one : cases(kWrong)) {
    const size_t before = report->findings().size();
    checker.enter(one, TypePhase::kForward);
    run(one);
    EXPECT_GT(report->findings().size(), before) << one;
  }
  EXPECT_EQ(report->findings()[0].what, "aten::div");
}

TEST_F(EachOperator, IsRightWhereItIs) {
  for (const std::string& one : cases(kRight)) {
    run(one);
    ASSERT_EQ(axis_found(), "") << one;
  }
}

TEST_F(Checker, AGivenResultIsNoOperand) {
  at::Tensor out = same_over({Axis::kTp, Axis::kDp});
  at::add_out(out, partial_over(Axis::kTp), partial_over(Axis::kTp));
  EXPECT_EQ(axis_found(), "");
  at::silu(out);
  EXPECT_EQ(axis_found(), "tp") << "it has the result's type";
}

TEST_F(Checker, ACallSaysWhatItMakesOfItsTensor) {
  const auto change = [&](const at::Tensor& x, Axis axis) {
    return checker.called({.verb = Verb::kAllReduce, .input = x, .output = x}, mesh.group(axis, 0)).text();
  };
  at::Tensor x = partial_over(Axis::kTp);
  EXPECT_EQ(change(x, Axis::kTp), "partial -> replicated over tp, varying over dp");
  EXPECT_EQ(checker
                .called({.verb = Verb::kReduceScatter, .input = partial_over(Axis::kTp), .output = at::empty({2, 4})},
                        mesh.group(Axis::kTp, 0))
                .text(),
            "partial -> varying over tp, varying over dp");
  EXPECT_FALSE(
      checker.called({.verb = Verb::kAllReduce, .input = numbers(), .output = numbers()}, mesh.group(Axis::kTp, 0))
          .known())
      << "a constant";
  EXPECT_EQ(checker.called({.verb = Verb::kSend, .input = same_over({Axis::kTp})}, mesh.group(Axis::kDp, 0)).text(),
            "replicated over tp, varying over dp");
}

TEST_F(Checker, WhatAViewReceivesIsItsBases) {
  const at::Tensor base = at::empty({8, 4});
  base.narrow(0, 0, 4).copy_(partial_over(Axis::kTp));
  at::sigmoid(base);
  EXPECT_EQ(axis_found(), "tp");
}

TEST_F(Checker, ConstantsSayNothing) {
  at::silu(numbers() + at::zeros({4, 4}));
  const at::Tensor x = partial_over(Axis::kTp);
  x.zero_();
  at::silu(x);
  at::silu(at::zeros_like(partial_over(Axis::kTp)));
  EXPECT_EQ(axis_found(), "");
}

TEST_F(Checker, ABiasBelongsBehindTheReduction) {
  const at::Tensor bias = same_over({Axis::kTp, Axis::kDp});
  at::Tensor y = partial_over(Axis::kTp);
  reduce(y, Axis::kTp);
  y = y + bias;
  EXPECT_EQ(axis_found(), "");
  partial_over(Axis::kTp).add_(bias);
  EXPECT_EQ(axis_found(), "tp");
}

TEST_F(Checker, AGradientOfWhatWasGatheredIsPartial) {
  // Wrong: backward of a gather takes its own rows instead of a sum.
  const at::Tensor x = same_over({Axis::kDp});
  const KeptTypes kept = checker.ran_forward("gather", {x}, {same_over({Axis::kTp, Axis::kDp})});
  const at::Tensor grad = same_over({Axis::kDp});  // what later modules make of it varies over tp
  checker.begin_backward(kept, {grad});
  checker.end_backward("gather", kept, {grad}, {grad.narrow(0, 0, 2)});
  EXPECT_EQ(axis_found(), "tp");
}

TEST_F(Checker, AReduceScatterInBackwardIsRight) {
  const at::Tensor x = same_over({Axis::kDp});
  const KeptTypes kept = checker.ran_forward("gather", {x}, {same_over({Axis::kTp, Axis::kDp})});
  const at::Tensor grad = same_over({Axis::kDp}), own = at::empty({2, 4});
  checker.begin_backward(kept, {grad});
  checker.called({.verb = Verb::kReduceScatter, .input = grad, .output = own}, mesh.group(Axis::kTp, 0));
  checker.end_backward("gather", kept, {grad}, {own});
  EXPECT_EQ(axis_found(), "");
}

class Gradients : public Checker {
 protected:
  at::Tensor weight = numbers(), flat = at::empty({16});
  const std::string name_ = "norm.weight";

  // A whole parameter whose gradient varies over tp and dp, as a norm's under sequence parallelism.
  void arrive() {
    checker.add({.name = name_, .data = weight});
    checker.arrived(name_, same_over({}));
    checker.begin_bucket(flat, {&name_});
  }
};

TEST_F(Gradients, ReducedOnceOverEachAxisAreRight) {
  arrive();
  reduce(flat, Axis::kTp);
  reduce(flat, Axis::kDp);
  checker.check_gradients();
  EXPECT_EQ(axis_found(), "");
}

// A bucket has the types that all its gradients share.
TEST_F(Gradients, ACallOnABucketSaysWhatItMakesOfAllAlike) {
  arrive();
  const std::string shard = "qkv.weight";
  checker.add({.name = shard, .data = at::ones({4, 4}), .split = true});
  checker.arrived(shard, same_over({}));
  checker.begin_bucket(flat, {&name_, &shard});
  EXPECT_EQ(checker.called({.verb = Verb::kAllReduce, .input = flat, .output = flat}, mesh.group(Axis::kDp, 0)).text(),
            "partial -> replicated over dp");
}

TEST_F(Gradients, AMissingReductionIsNamed) {
  EXPECT_EQ(checker.type_text(name_, true), "");
  arrive();
  reduce(flat, Axis::kDp);
  EXPECT_EQ(checker.type_text(name_, true), "partial over tp, replicated over dp");
  EXPECT_EQ(checker.type_text(name_, false), "replicated over tp, replicated over dp");
  checker.check_gradients();
  ASSERT_EQ(axis_found(), "tp");
  EXPECT_EQ(report->findings().front().module, name_);
  EXPECT_EQ(report->findings().front().phase, TypePhase::kReduction);
  EXPECT_THROW(report->check(), std::exception);
}

TEST_F(Gradients, ADoubledReductionIsNamed) {
  arrive();
  reduce(flat, Axis::kDp);
  reduce(flat, Axis::kTp);
  reduce(flat, Axis::kDp);
  EXPECT_EQ(axis_found(), "dp");
}

TEST_F(Gradients, AShardIsNotAddedToOthers) {
  checker.add({.name = name_, .data = weight, .split = true});
  checker.arrived(name_, same_over({}));
  checker.begin_bucket(flat, {&name_});
  reduce(flat, Axis::kTp);
  EXPECT_EQ(axis_found(), "tp");
}

TEST_F(Gradients, ALateOneIsNotAddedToTheSum) {
  arrive();
  reduce(flat, Axis::kTp);
  reduce(flat, Axis::kDp);
  checker.handed_over(name_, weight);
  const at::Tensor late = same_over({});
  checker.arrived(name_, late);
  weight.add_(late);
  ASSERT_NE(axis_found(), "");
  EXPECT_EQ(report->findings().front().module, name_);
}

TEST_F(Gradients, TheNormCountsEachPartOnce) {
  arrive();
  reduce(flat, Axis::kTp);
  reduce(flat, Axis::kDp);
  checker.counted(name_, /*first_only=*/true, Axis::kTp);
  checker.norm_summed(false, Axis::kTp);
  checker.check_norm();
  EXPECT_EQ(axis_found(), "");
}

TEST_F(Gradients, TheNormCountsNothingTwice) {
  arrive();
  reduce(flat, Axis::kTp);
  reduce(flat, Axis::kDp);
  checker.counted(name_, /*first_only=*/false, Axis::kTp);
  checker.norm_summed(false, Axis::kTp);
  EXPECT_EQ(axis_found(), "tp");
}

TEST_F(Gradients, TheNormLeavesNoShardOut) {
  checker.add({.name = name_, .data = weight, .split = true});
  checker.arrived(name_, same_over({Axis::kDp}));
  checker.counted(name_, /*first_only=*/true, Axis::kTp);
  EXPECT_EQ(axis_found(), "tp");
}

TEST_F(Gradients, TheNormIsTheSameOnAllRanks) {
  checker.add({.name = name_, .data = weight, .split = true});
  checker.arrived(name_, same_over({Axis::kDp}));
  checker.counted(name_, /*first_only=*/false, Axis::kTp);
  checker.check_norm();
  EXPECT_EQ(axis_found(), "tp") << "the squares of other shards were not added";
}

// DiLoCo: gradients are summed, and norms are equal, within each replica of two tp ranks.
TEST(ReplicaTypes, AreOfEachReplicaAlone) {
  const DeviceMesh mesh({.world = 4, .tp = 2, .dp = 2, .replicas = 2});
  const std::string name = "norm.weight";
  for (const bool is_reduced : {true, false}) {
    const auto report = std::make_shared<TypeReport>();
    TypeChecker checker{RankPartitions(mesh), {Axis::kDpShard, Axis::kEdpShard}, 0, report};
    const at::Tensor weight = at::ones({4, 4}), grad = at::ones({4, 4}), flat = at::empty({16});
    checker.add({.name = name, .data = weight});
    checker.is_same_over(grad, {});
    checker.arrived(name, grad);
    checker.begin_bucket(flat, {&name});
    if (is_reduced) checker.called({.verb = Verb::kAllReduce, .input = flat, .output = flat}, mesh.group(Axis::kTp, 0));
    checker.check_gradients();
    checker.counted(name, /*first_only=*/is_reduced, Axis::kTp);
    checker.check_norm();
    EXPECT_EQ(report->findings().empty(), is_reduced);
    for (const auto& finding : report->findings()) EXPECT_EQ(finding.axis, Axis::kTp);
  }
}

TEST_F(Checker, WhatIsSharedIsUpdatedByTheSameNumbers) {
  checker.expect_same(same_over({Axis::kTp, Axis::kDp}), {Axis::kTp, Axis::kDp}, "bias");
  EXPECT_EQ(axis_found(), "");
  checker.expect_same(same_over({Axis::kTp}), {Axis::kTp, Axis::kDp}, "bias");
  EXPECT_EQ(axis_found(), "dp");
}

}  // namespace
}  // namespace ranklab
