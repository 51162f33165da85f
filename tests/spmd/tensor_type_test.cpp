// What operators and collectives make of types, and which uses are wrong, over which axis.
#include "core/spmd/tensor_type.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/spmd/operand_uses.h"

namespace ranklab {
namespace {

class Types : public testing::Test {
 protected:
  // dp 2 x tp 2; experts over ep 4.
  TypeRules rules{RankPartitions(DeviceMesh({.world = 4, .tp = 2, .dp = 2, .ep = 4}))};
  std::optional<TypeFault> fault;

  PartitionId over(Axis axis) { return rules.partitions().groups(axis); }
  // The same on all ranks of an axis, and varying over the others.
  SpmdType same_over(Axis axis) { return {over(axis)}; }
  SpmdType varying() { return {RankPartitions::kApart}; }
  SpmdType partial_over(Axis axis) { return {RankPartitions::kApart, RankPartitions::kApart, over(axis)}; }
  SpmdType both(const SpmdType& a, const SpmdType& b, OperandUse use) {
    fault.reset();
    const std::vector<SpmdType> operands = {a, b};
    return rules.combined(operands, use, fault);
  }
};

TEST_F(Types, PartitionsJoinAndMeet) {
  RankPartitions& p = rules.partitions();
  EXPECT_EQ(p.join(over(Axis::kTp), over(Axis::kDp)), RankPartitions::kTogether);
  EXPECT_EQ(p.meet(over(Axis::kTp), over(Axis::kDp)), RankPartitions::kApart);
  EXPECT_EQ(over(Axis::kEp), RankPartitions::kTogether) << "ep counts the ranks of tp and dp another way";
  EXPECT_TRUE(p.within(over(Axis::kTp), over(Axis::kEp)));
  EXPECT_FALSE(p.within(over(Axis::kEp), over(Axis::kTp)));
  EXPECT_EQ(p.places(Axis::kTp), over(Axis::kDp)) << "ranks at the same place of tp groups are those of a dp group";
  EXPECT_EQ(over(Axis::kCp), RankPartitions::kApart) << "an axis of one rank";
}

TEST_F(Types, CopiesAreOfPipelineRanks) {
  RankPartitions p(DeviceMesh({.world = 8, .tp = 2, .pp = 4, .dp = 1}));
  const PartitionId copies = p.copies({0, 3});
  EXPECT_TRUE(p.within(copies, p.groups(Axis::kPp)));
  EXPECT_FALSE(p.within(p.groups(Axis::kPp), copies)) << "the stages between have none";
}

TEST_F(Types, WhatVariesMakesWhatVaries) {
  EXPECT_EQ(both(same_over(Axis::kTp), varying(), OperandUse::kMultiplied), varying());
  EXPECT_EQ(both(same_over(Axis::kTp), {RankPartitions::kTogether}, OperandUse::kNonlinear), same_over(Axis::kTp));
  EXPECT_FALSE(fault);
}

TEST_F(Types, PartialGoesThroughLinearOperatorsOnly) {
  EXPECT_EQ(both(partial_over(Axis::kTp), same_over(Axis::kTp), OperandUse::kMultiplied).need, over(Axis::kTp));
  EXPECT_FALSE(fault);
  both(partial_over(Axis::kTp), partial_over(Axis::kTp), OperandUse::kAdded);
  EXPECT_FALSE(fault);
  both(partial_over(Axis::kTp), partial_over(Axis::kTp), OperandUse::kMultiplied);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->axis, Axis::kTp);
  both(partial_over(Axis::kDp), varying(), OperandUse::kNonlinear);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->axis, Axis::kDp);
}

TEST_F(Types, CompleteIsNotAddedToPartial) {
  both(partial_over(Axis::kTp), same_over(Axis::kTp), OperandUse::kAdded);
  ASSERT_TRUE(fault) << "a bias before the reduction counts once for each rank";
  EXPECT_EQ(fault->axis, Axis::kTp);
  both(partial_over(Axis::kTp), varying(), OperandUse::kAdded);
  EXPECT_FALSE(fault) << "what varies may be another summand";
  SpmdType other = partial_over(Axis::kDp);
  other.same = over(Axis::kTp);
  both(other, partial_over(Axis::kTp), OperandUse::kAdded);
  EXPECT_TRUE(fault) << "partial over dp, and complete over tp";
}

// Each use by its operand's place: bias + partial x complete, complete / partial.
TEST_F(Types, OperandsHaveUsesOfTheirOwn) {
  const SpmdType partial = partial_over(Axis::kTp), complete = same_over(Axis::kTp);
  const auto axis_of_fault = [&](const std::vector<SpmdType>& operands, const char* uses) {
    const OperatorRule rule{.uses = uses};
    std::vector<OperandUse> each;
    for (size_t i = 0; i < operands.size(); ++i) each.push_back(rule.use_of(i));
    fault.reset();
    EXPECT_TRUE(rules.combined(operands, each, fault).partial());
    return fault ? fault->axis : Axis::kCount;
  };
  EXPECT_EQ(axis_of_fault({partial, complete}, "fn"), Axis::kCount);
  EXPECT_EQ(axis_of_fault({complete, partial}, "fn"), Axis::kTp) << "a divisor";
  EXPECT_EQ(axis_of_fault({partial, partial}, "fn"), Axis::kTp);
  EXPECT_EQ(axis_of_fault({complete, partial, complete}, "aff"), Axis::kTp) << "a bias before the reduction";
  EXPECT_EQ(axis_of_fault({complete, complete, partial}, "aff"), Axis::kTp);
  EXPECT_EQ(axis_of_fault({partial, partial, complete}, "aff"), Axis::kCount);
  EXPECT_EQ(axis_of_fault({partial, complete, complete}, "aff"), Axis::kTp) << "a complete product, added";
  EXPECT_EQ(axis_of_fault({varying(), complete, partial}, "aff"), Axis::kCount) << "another summand";
  EXPECT_EQ(axis_of_fault({partial, partial, partial}, "aff"), Axis::kTp) << "a product of partial sums";
  EXPECT_EQ(axis_of_fault({partial, complete}, "cn"), Axis::kCount);
  EXPECT_EQ(axis_of_fault({complete, complete, partial}, "cn"), Axis::kTp) << "the last letter goes on";
}

TEST_F(Types, ReductionsCompleteASum) {
  SpmdType sum = rules.all_reduced(partial_over(Axis::kTp), Axis::kTp, fault);
  EXPECT_FALSE(sum.partial());
  EXPECT_EQ(sum.same, over(Axis::kTp));
  sum = rules.reduce_scattered(partial_over(Axis::kTp), Axis::kTp, fault);
  EXPECT_FALSE(sum.partial());
  EXPECT_EQ(sum.same, RankPartitions::kApart);
  EXPECT_FALSE(fault);
}

TEST_F(Types, ASecondSumIsDoubled) {
  const SpmdType sum = rules.all_reduced(partial_over(Axis::kTp), Axis::kTp, fault);
  rules.all_reduced(sum, Axis::kTp, fault);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->axis, Axis::kTp);
  fault.reset();
  rules.all_reduced(same_over(Axis::kTp), Axis::kTp, fault);
  EXPECT_TRUE(fault) << "what all ranks have is added up";
  fault.reset();
  rules.all_reduced(varying(), Axis::kTp, fault);
  EXPECT_FALSE(fault);
}

TEST_F(Types, TheWrongGroupHoldsOtherParts) {
  rules.all_reduced(partial_over(Axis::kTp), Axis::kDp, fault);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->axis, Axis::kDp);
  fault.reset();
  rules.all_reduced_max(partial_over(Axis::kTp), Axis::kTp, fault);
  EXPECT_TRUE(fault) << "the maximum of summands";
}

TEST_F(Types, GathersAndExchanges) {
  EXPECT_EQ(rules.all_gathered(varying(), Axis::kTp).same, over(Axis::kTp));
  EXPECT_EQ(rules.exchanged({RankPartitions::kTogether}, Axis::kTp).same, over(Axis::kDp));
}

TEST_F(Types, AProductIsContractedOverWhatBothAreSplitOver) {
  EXPECT_EQ(rules.product(varying(), varying(), over(Axis::kTp)).need, over(Axis::kTp)) << "a row-parallel matrix";
  EXPECT_FALSE(rules.product(varying(), same_over(Axis::kTp), over(Axis::kTp)).partial()) << "a column-parallel one";
  EXPECT_FALSE(rules.product(varying(), varying(), RankPartitions::kApart).partial()) << "a whole one";
}

// By duality: the gradient of a replicated tensor needs a sum over its ranks, unless it is replicated itself.
TEST_F(Types, GradientsOfWhatIsTheSameAreSummedOnce) {
  const SpmdType weight{RankPartitions::kTogether};
  const SpmdType grad = rules.gradient(weight, same_over(Axis::kTp));
  EXPECT_TRUE(grad.partial());
  EXPECT_EQ(rules.missing(grad.need, grad.have), Axis::kDp) << "tp ranks have seen the same tokens";
  EXPECT_EQ(rules.missing(rules.gradient(weight, varying()).need, RankPartitions::kApart), Axis::kTp);
  const SpmdType reduced = rules.all_reduced(grad, Axis::kDp, fault);
  EXPECT_FALSE(reduced.partial());
  EXPECT_FALSE(fault);
  rules.all_reduced(grad, Axis::kTp, fault);
  EXPECT_TRUE(fault) << "norm gradients where tp ranks have the same tokens";
  EXPECT_FALSE(rules.gradient(varying(), varying()).partial()) << "a shard's own";
  EXPECT_EQ(rules.gradient(varying(), same_over(Axis::kTp)).same, RankPartitions::kApart) << "of other elements";
  EXPECT_EQ(rules.gradient(partial_over(Axis::kTp), same_over(Axis::kTp)).same, over(Axis::kTp)) << "summands";
}

TEST_F(Types, TextNamesEachAxis) {
  EXPECT_EQ(rules.text(partial_over(Axis::kTp)), "partial over tp, varying over dp, varying over ep");
  EXPECT_EQ(rules.text(same_over(Axis::kTp)), "replicated over tp, varying over dp, varying over ep");
}

TEST(OperandUses, AreThoseOfTheOperators) {
  const OperatorRule add = operator_rule("aten::add_", "Tensor");
  EXPECT_EQ(add.uses, "a");
  EXPECT_TRUE(add.in_place);
  EXPECT_TRUE(add.reads_first);
  EXPECT_FALSE(operator_rule("aten::copy_", "").reads_first);
  EXPECT_EQ(operator_rule("aten::div_", "Tensor").use_of(0), OperandUse::kMultiplied);
  EXPECT_EQ(operator_rule("aten::div", "Tensor").use_of(1), OperandUse::kNonlinear);
  EXPECT_EQ(operator_rule("aten::mm", "").use_of(1), OperandUse::kMultiplied);
  EXPECT_EQ(operator_rule("aten::silu", "").use_of(0), OperandUse::kNonlinear);
  EXPECT_EQ(operator_rule("aten::index_select", "").use_of(0), OperandUse::kCarried);
  EXPECT_TRUE(operator_rule("aten::zeros_like", "").makes_constants);
  EXPECT_TRUE(operator_rule("aten::mm", "out").has_out);
}

}  // namespace
}  // namespace ranklab
