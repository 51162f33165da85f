#include "core/data/packed_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace ranklab {
namespace {

using namespace std::string_view_literals;
using ::testing::HasSubstr;

std::string refusal(std::string_view begins) {
  try {
    require_unpacked("a b", begins, "here");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(PackedFormat, IsToldByItsFirstBytes) {
  EXPECT_THAT(refusal("\x1f\x8b\x08 more"), HasSubstr("gzip -dk 'a b'"));
  EXPECT_THAT(refusal("\xfd"
                      "7zXZ\0\0"sv),
              HasSubstr("xz -dk"));
  EXPECT_THAT(refusal("BZh91AY&SYabc"), HasSubstr("bzip2 -dk"));
  EXPECT_THAT(refusal("\x93NUMPY\x01"), HasSubstr("numpy.load('a b')"));
  EXPECT_THAT(refusal("ARROW1\0\0\xff"sv), HasSubstr("read_feather('a b')"));
}

TEST(PackedFormat, TextsThatBeginLikeOneAreTexts) {
  for (const std::string_view text : {""sv, "\x1f"sv, "PAR1 of a book"sv, "ARROW1 and ARROW2"sv, "BZh is no word"sv,
                                      "PK"sv, "{\"text\": 1}"sv, "\xef\xbb\xbfwords"sv})
    EXPECT_EQ(refusal(text), "") << text;
}

}  // namespace
}  // namespace ranklab
