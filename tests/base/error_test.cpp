#include "core/base/error.h"

#include <gtest/gtest.h>

namespace ranklab {
namespace {

TEST(Error, TextNamesWhereWhatGotWantAndFix) {
  const Error error(ErrorKind::kInvalidArgument, {.where = "mesh",
                                                  .what = "tp does not divide the world",
                                                  .got = "tp 3, world 8",
                                                  .want = "tp in {1, 2, 4, 8}",
                                                  .fix = "use --tp 2 or --tp 4"});
  EXPECT_STREQ(
      error.what(),
      "[mesh] tp does not divide the world; got tp 3, world 8; want tp in {1, 2, 4, 8}; do: use --tp 2 or --tp 4");
}

TEST(Error, EmptyPartsAreLeftOut) { EXPECT_STREQ(Error(ErrorKind::kInternal, {.what = "lost"}).what(), "lost"); }

TEST(Error, ExitCodesAreTheDocumentedOnes) {
  EXPECT_EQ(exit_code(ErrorKind::kInvalidArgument), 2);
  EXPECT_EQ(exit_code(ErrorKind::kEnvironment), 3);
  EXPECT_EQ(exit_code(ErrorKind::kCheckFailed), 4);
  EXPECT_EQ(exit_code(ErrorKind::kCommunication), 5);
  EXPECT_EQ(exit_code(ErrorKind::kTimeout), 6);
  EXPECT_EQ(exit_code(ErrorKind::kNumeric), 7);
  EXPECT_EQ(exit_code(ErrorKind::kBadFile), 8);
  EXPECT_EQ(exit_code(ErrorKind::kOutputLost), 9);
  EXPECT_EQ(exit_code(ErrorKind::kSentinel), 10);
  EXPECT_EQ(exit_code(ErrorKind::kInterrupted), 130);
  EXPECT_EQ(exit_code(ErrorKind::kInternal), 1);
}

TEST(Check, ThrowsOnlyWhenFalse) {
  EXPECT_NO_THROW(RANKLAB_CHECK(true, ErrorKind::kInternal, .what = "no"));
  try {
    RANKLAB_CHECK(1 + 1 == 3, ErrorKind::kNumeric, .where = "here", .what = "sum");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNumeric);
    EXPECT_STREQ(error.what(), "[here] sum");
  }
}

}  // namespace
}  // namespace ranklab
