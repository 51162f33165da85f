// Patterns as the reference understands them, and those that are refused.
#include "core/data/tokenizer/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/data/tokenizer/normalize.h"
#include "core/data/tokenizer/pre_tokenize.h"

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Words words_of(const PreTokenizerSpec& spec, const std::string& text) {
  Words words;
  PreTokenizer(spec, "test").split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Words split_by(const std::string& pattern, SplitBehavior behavior, const std::string& text, bool invert = false) {
  return words_of({.splits = {{pattern, true, behavior, invert}}, .gpt2_pattern = false}, text);
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(TokenizerPatterns, MatchesGoWhereTheBehaviorSays) {
  EXPECT_THAT(split_by("-", SplitBehavior::kIsolated, "a--b-"), ElementsAre("a", "-", "-", "b", "-"));
  EXPECT_THAT(split_by("-", SplitBehavior::kRemoved, "a--b-"), ElementsAre("a", "b"));
  EXPECT_THAT(split_by("-", SplitBehavior::kContiguous, "a--b-"), ElementsAre("a", "--", "b", "-"));
  EXPECT_THAT(split_by("-", SplitBehavior::kMergedWithPrevious, "a--b-"), ElementsAre("a-", "-", "b-"));
  EXPECT_THAT(split_by("-", SplitBehavior::kMergedWithNext, "a--b-"), ElementsAre("a", "-", "-b", "-"));
  EXPECT_THAT(split_by("-", SplitBehavior::kRemoved, "a--b-", true), ElementsAre("-", "-", "-"));
}

TEST(TokenizerPatterns, AnEmptyMatchCutsAndIsNoWord) {
  EXPECT_THAT(split_by("x*", SplitBehavior::kIsolated, "axxé"), ElementsAre("a", "xx", "é"));
  EXPECT_THAT(split_by("(?=é)", SplitBehavior::kIsolated, "éaé"), ElementsAre("éa", "é"));
}

TEST(TokenizerPatterns, Gpt2PutsASpaceInFrontWhereItIsAsked) {
  EXPECT_THAT(words_of({.add_prefix_space = true}, "it's 12!  ok"), ElementsAre(" it", "'s", " 12", "!", " ", " ok"));
  EXPECT_THAT(words_of({}, "it's"), ElementsAre("it", "'s"));
}

// PCRE2's \s would take the Mongolian vowel separator for a space, and its \w no mark.
TEST(TokenizerPatterns, SpaceAndWordAreOnigurumas) {
  EXPECT_THAT(split_by(R"(\s)", SplitBehavior::kRemoved, "a\u180eb\u2003c\u0085d"), ElementsAre("a\u180eb", "c", "d"));
  EXPECT_THAT(split_by(R"([\s])", SplitBehavior::kRemoved, "a\u180eb\u3000c"), ElementsAre("a\u180eb", "c"));
  EXPECT_THAT(split_by(R"([^\S]+)", SplitBehavior::kRemoved, "a\u180eb c"), ElementsAre("a\u180eb", "c"));
  EXPECT_THAT(split_by(R"(\w+)", SplitBehavior::kIsolated, "e\u0301t\u00e9!"), ElementsAre("e\u0301t\u00e9", "!"));
  EXPECT_THAT(split_by(R"((?i:'s))", SplitBehavior::kIsolated, "a'\u017fb'S"), ElementsAre("a", "'\u017f", "b", "'S"));
}

// Each text cut by Hugging Face's tokenizers 0.22 in the same way.
TEST(TokenizerPatterns, ScriptsAndNamedSetsAreOnigurumas) {
  const auto rest = [](const std::string& pattern, const std::string& text) {
    return split_by(pattern, SplitBehavior::kRemoved, text);
  };
  EXPECT_THAT(rest(R"(\p{Han}+)", "中、国」a"), ElementsAre("、", "」a"));
  EXPECT_THAT(rest(R"([\p{Hiragana}\p{Greek}]+)", "あーα\u0342b"), ElementsAre("ー", "\u0342b"));
  EXPECT_THAT(rest(R"(\P{Han}+)", "中、国a"), ElementsAre("中", "国"));
  EXPECT_THAT(rest(R"(\p{^Han}+)", "中、国a"), ElementsAre("中", "国"));
  EXPECT_THAT(rest(R"(\p{L}+)", "a1é"), ElementsAre("1"));
  EXPECT_THAT(rest("[[:alpha:]]+", "1ͅa½"), ElementsAre("1", "½"));
  EXPECT_THAT(rest("[[:alnum:]]+", "a²1"), ElementsAre("²"));
  EXPECT_THAT(rest("[[:punct:]]+", "a$b+c£d"), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(rest("[[:space:]]+", "a\u180eb c"), ElementsAre("a\u180eb", "c"));
  EXPECT_THAT(rest("[[:lower:]]+", "ªA"), ElementsAre("A"));
  EXPECT_THAT(rest("[[:^digit:]_]+", "1a2"), ElementsAre("1", "2"));
  EXPECT_THAT(rest(R"(\w+)", "x²½a "), ElementsAre(" "));
  EXPECT_THAT(rest(R"([\w]+)", "x²"), ElementsAre("²"));
  EXPECT_THAT(rest(R"(\W+)", "x²!"), ElementsAre("x²"));
}

TEST(TokenizerPatterns, LinesOptionsAndIntervalsAreOnigurumas) {
  const auto isolated = [](const std::string& pattern, const std::string& text) {
    return split_by(pattern, SplitBehavior::kIsolated, text);
  };
  EXPECT_THAT(isolated("^a", "a\naa"), ElementsAre("a", "\n", "a", "a"));
  EXPECT_THAT(isolated("a$", "aa\na"), ElementsAre("a", "a", "\n", "a"));
  EXPECT_THAT(isolated("(?m:a.b)", "xa\nb"), ElementsAre("x", "a\nb"));
  EXPECT_THAT(isolated("a.b", "xa\nb"), ElementsAre("xa\nb"));
  EXPECT_THAT(isolated("xa{,2}", "xaaa"), ElementsAre("xaa", "a"));
  EXPECT_THAT(isolated("a{1,2}|{,}|b{", "aaa{,}b{"), ElementsAre("aa", "a", "{,}", "b{"));
  EXPECT_THAT(isolated("x(?i)a|b", "xB"), ElementsAre("xB"));  // x(?i:a|b)
  EXPECT_THAT(isolated("(x(?i)a|b)c", "xBc"), ElementsAre("xBc"));
  EXPECT_THAT(isolated("(?i-m:a)b", "AbAB"), ElementsAre("Ab", "AB"));
  EXPECT_THAT(isolated("(?#a{)b(?:c)(?<n>d)", "abcd"), ElementsAre("a", "bcd"));
  EXPECT_THAT(isolated(R"(\x{61}{2})", "aab"), ElementsAre("aa", "b"));
}

TEST(TokenizerPatterns, WhatIsNoPatternOrNotOursIsRefused) {
  for (const auto& [pattern, why] : {std::pair<const char*, const char*>{"(a", "missing closing parenthesis"},
                                     {R"(\C)", "\\C"},
                                     {R"(a\b)", "\\b"},
                                     {R"(\h+)", "\\h"},
                                     {"[a-z&&[b]]", "an intersection"},
                                     {"[a[b]]", "a class within a class"},
                                     {R"(a\K)", "\\K"},
                                     {R"(\pL)", "\\p without {}"},
                                     {R"(\PL)", "\\P without {}"},
                                     {"[[:graph:]]", "[:graph:]"},
                                     {"[[:^punct:]]", "[:^punct:]"},
                                     {"[[:alpha]", "a class within a class"},
                                     {"(?s)a", "(?s"},
                                     {"(?x) a", "(?x"},
                                     {"(*UTF)a", "(*"},
                                     {"a{2,3}+", "a + after {n,m}"},
                                     {"a{2}?", "a ? after {n}"},
                                     {R"(\p{Nonsense})", "unknown property"}})
    EXPECT_THAT(refusal([&] { const Pattern made(pattern, "tokenizer x.json"); }),
                testing::AllOf(HasSubstr("[tokenizer x.json]"), HasSubstr(why)));
}

TEST(TokenizerPatterns, ACatastrophicPatternGivesUp) {
  const Pattern pattern("(a+)+$", "test");
  const std::string text = std::string(64, 'a') + "b";
  EXPECT_THAT(refusal([&] { pattern.find(text, 0); }), HasSubstr("cannot be matched on this text"));
}

TEST(TokenizerPatterns, ALongRunIsMatchedWhole) {
  const std::string spaces(3'000'000, ' ');
  EXPECT_THAT(words_of({}, spaces), ElementsAre(spaces));
  EXPECT_EQ(split_by(R"(\s*[\r\n]+|\s+(?!\S)|\s+)", SplitBehavior::kIsolated, spaces + "x").size(), 3u);
}

TEST(NormalForms, AreUnicodes) {
  const std::vector<NormalForm> c = {NormalForm::kNfc}, d = {NormalForm::kNfd}, kc = {NormalForm::kNfkc};
  EXPECT_EQ(normalized("e\u0301", c), "\u00e9");
  EXPECT_EQ(normalized("\u00e9", d), "e\u0301");
  EXPECT_EQ(normalized("\u1e69", d), "s\u0323\u0307");  // marks in their canonical order
  EXPECT_EQ(normalized("\ufb01\u2460", kc), "fi1");
  EXPECT_EQ(normalized("\u1100\u1161\u11a8", c), "\uac01");  // Hangul
  EXPECT_EQ(normalized(std::string("a\0é", 4), c), std::string("a\0é", 4));
}

}  // namespace
}  // namespace ranklab
