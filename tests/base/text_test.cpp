#include "core/base/text.h"

#include <gtest/gtest.h>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/shell_quote.h"
#include "core/base/utf8.h"

namespace ranklab {
namespace {

TEST(Text, HumanUnits) {
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_ns(1.5e6), "1.50 ms");
  EXPECT_EQ(human_count(12345), "12.3k");
  EXPECT_EQ(human_count(999'885'952), "1.00B");
  EXPECT_EQ(human_bytes(1023.8 * 1024), "1.00 MiB");
  EXPECT_EQ(human_bytes(1023), "1023 B");
}

TEST(Text, BlankLinesHoldWhiteSpaceAlone) {
  for (const char* blank : {"", " \t\r", "\f", "\v\n"}) EXPECT_TRUE(is_blank(blank));
  for (const char* text : {"a", " . ", "\xc2\xa0"}) EXPECT_FALSE(is_blank(text));
}

TEST(Text, ControlCharactersAreNotShown) {
  EXPECT_EQ(without_controls("a\x1b[31m\n\x7f\xc2\x9bm"), "a?[31m????m");
  EXPECT_EQ(without_controls("Gr\xc3\xbc\xc3\x9f\x65 \xe2\x86\x92"), "Gr\xc3\xbc\xc3\x9f\x65 \xe2\x86\x92");
}

TEST(Text, NearestNameForgivesTyposButNotStrangers) {
  const std::vector<std::string> names = {"tensor-model-parallel-size", "train-iters", "seq-length"};
  EXPECT_EQ(nearest_name("train-iter", names), "train-iters");
  EXPECT_EQ(nearest_name("sequence-length", names), "seq-length");
  EXPECT_EQ(nearest_name("zzz", names), "");
  EXPECT_EQ(nearest_name("training.iterations", std::vector<std::string>{"train.accumulation"}), "");
  const std::vector<std::string> others = {"--set", "--tp", "RMSNorm", "h200", "h100-sxm"};
  EXPECT_EQ(nearest_name("--pt", others), "--tp");  // a swap is one typo
  EXPECT_EQ(nearest_name("rmsnorm", others), "RMSNorm");
  EXPECT_EQ(nearest_name("h100", others), "h100-sxm");  // the beginning of a name beats a typo
}

TEST(ShellQuote, AShellReadsWhatWasMeant) {
  EXPECT_EQ(shell_path("runs/a.json"), "runs/a.json");
  EXPECT_EQ(shell_path("my run's"), "'my run'\\''s'");
  EXPECT_EQ(shell_path("-x"), "./-x");
  EXPECT_EQ(shell_path("-a b"), "'./-a b'");
  EXPECT_EQ(shell_word("-x"), "-x") << "a flag";
  EXPECT_EQ(shell_word("a\rb"), "'a\rb'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(DType, NamesRoundTripAndUnknownOnesAreRefused) {
  EXPECT_EQ(parse_dtype("bf16"), DType::kBFloat16);
  EXPECT_EQ(size_bytes(DType::kBFloat16), 2);
  EXPECT_EQ(name(DType::kFloat32), "fp32");
  EXPECT_THROW(parse_dtype("float"), Error);
}

TEST(Utf8, BytesThatAreNoneAreToldFromText) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("Gr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac"));
  for (const char* text : {"a\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    EXPECT_FALSE(is_utf8(text)) << shown_as_utf8(text);
  EXPECT_EQ(shown_as_utf8("a\xff\xc3\xbc"), "a\\xff\xc3\xbc");
}

TEST(Utf8, AByteOrderMarkIsOnlyAtTheStart) {
  EXPECT_EQ(byte_order_mark("\xef\xbb\xbfwords"), 3u);
  EXPECT_EQ(byte_order_mark("\xef\xbb\xbf"), 3u);
  for (const char* text : {"", "\xef\xbb", "words", "a\xef\xbb\xbf"}) EXPECT_EQ(byte_order_mark(text), 0u) << text;
}

TEST(Utf8, ReadableTextKeepsLettersOfAnyLanguage) {
  EXPECT_EQ(readable_text("Der sch\xc3\xb6ne\tTag \xe2\x86\x92\n"), "Der sch\xc3\xb6ne\tTag \xe2\x86\x92\n");
  EXPECT_EQ(readable_text("a\x1b[1m\r\x7f\xc2\x9bm"), "a.[1m...m") << "terminals obey these";
  EXPECT_EQ(readable_text("\xb6ne \xff \xe2\x86"), ".ne . ..") << "cut within a letter, and noise";
  EXPECT_EQ(readable_text("\xff!", "\uFFFD"), "\uFFFD!");
}

}  // namespace
}  // namespace ranklab
