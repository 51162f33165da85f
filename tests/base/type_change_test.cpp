#include "core/base/type_change.h"

#include <gtest/gtest.h>

namespace ranklab {
namespace {

TEST(TypeChange, SaysWhatBecomesOfATensorOverEachAxis) {
  TypeChange change;
  EXPECT_FALSE(change.known());
  EXPECT_EQ(change.text(), "");
  change.set(Axis::kDp, AxisType::kVarying, AxisType::kVarying);
  change.set(Axis::kTp, AxisType::kPartial, AxisType::kReplicated);
  EXPECT_EQ(change.before(Axis::kTp), AxisType::kPartial);
  EXPECT_EQ(change.after(Axis::kTp), AxisType::kReplicated);
  EXPECT_EQ(change.text(), "partial -> replicated over tp, varying over dp");
}

TEST(TypeChange, WhatTwoHaveInCommon) {
  TypeChange a, b;
  a.set(Axis::kTp, AxisType::kPartial, AxisType::kReplicated);
  a.set(Axis::kDp, AxisType::kVarying, AxisType::kVarying);
  b.set(Axis::kTp, AxisType::kPartial, AxisType::kReplicated);
  b.set(Axis::kDp, AxisType::kVarying, AxisType::kReplicated);
  EXPECT_EQ(a.common(b).text(), "partial -> replicated over tp");
  EXPECT_EQ(a.common(a), a);
}

TEST(TypeChange, IsReadBackFromItsTextAndFromNoOther) {
  for (uint32_t bits = 0; bits < TypeChange::kEnd; bits = 5 * bits + 77) {
    const TypeChange change(bits);
    EXPECT_EQ(TypeChange::parsed(change.text()), change) << change.text();
  }
  for (const char* text : {"partial", "partial over", "partial over world", "Partial over tp", "partial over tp,",
                           "varying over dp, partial over tp", "partial over tp, partial over tp",
                           "partial -> partial over tp", "unknown over tp", " -> over tp"})
    EXPECT_EQ(TypeChange::parsed(text), std::nullopt) << text;
}

}  // namespace
}  // namespace ranklab
