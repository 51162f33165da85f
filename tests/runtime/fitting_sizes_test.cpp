// The values recommended for sizes that do not fit each other also fit all other settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "core/base/size_error.h"
#include "core/config/settings/fields.h"
#include "core/config/settings/flags.h"
#include "core/config/settings/sources.h"

namespace ranklab {
namespace {

using ::testing::HasSubstr;

using Words = std::vector<std::string>;

MergedConfig merged(const Words& words) { return merge_config(TrainConfig{}, flag_settings(words, "test")); }

// "" when it resolves.
ErrorText refusal(const Words& words) {
  try {
    const MergedConfig all = merged(words);
    resolve(all.config, all.origins);
  } catch (const Error& error) {
    return error.text();
  }
  return {};
}

// The recommended flags with each of their values: "use --tp 1, 2 or 4, or --world-size 6".
std::vector<Words> recommended(const std::string& fix) {
  std::vector<Words> all;
  const std::regex flag("(--[a-z-]+)((?: |, |or |[0-9])+)"), number("[0-9]+");
  for (std::sregex_iterator it(fix.begin(), fix.end(), flag), end; it != end; ++it) {
    const std::string values = (*it)[2];
    for (std::sregex_iterator one(values.begin(), values.end(), number); one != end; ++one)
      all.push_back({(*it)[1], one->str()});
  }
  return all;
}

// The words with the flag's value replaced, or added.
Words with(Words words, const Words& change) {
  for (size_t i = 0; i < words.size(); i += 2) {
    if (field_named(words[i]).key != field_named(change[0]).key) continue;
    words[i + 1] = change[1];
    return words;
  }
  words.insert(words.end(), change.begin(), change.end());
  return words;
}

TEST(FittingSizes, EveryRecommendationResolves) {
  const std::vector<Words> wrong = {{"--tp", "3"},
                                    {"--pp", "3"},
                                    {"--num-query-groups", "3"},
                                    {"--tp", "8", "--num-attention-heads", "6", "--hidden-size", "96"},
                                    {"--tp", "8", "--num-attention-heads", "12", "--hidden-size", "96"},
                                    {"--hidden-size", "100", "--num-attention-heads", "3"},
                                    {"--num-query-groups", "8", "--num-attention-heads", "4"},
                                    {"--ffn-hidden-size", "255", "--tp", "4"},
                                    {"--gbs", "30", "--dp", "4"},
                                    {"--gbs", "30", "--mbs", "4", "--dp", "2"},
                                    {"--gbs", "32", "--num-microbatches", "5"},
                                    {"--dp", "3", "--tp", "2", "--world-size", "8"},
                                    {"--cp", "4", "--seq-length", "100"},
                                    {"--preset", "deepseek_v3_tiny", "--ep", "3"},
                                    {"--preset", "deepseek_v3_tiny", "--ep", "8", "--num-experts", "12"}};
  for (const Words& words : wrong) {
    const ErrorText text = refusal(words);
    const std::vector<Words> changes = recommended(text.fix);
    ASSERT_THAT(text.fix, HasSubstr("use --")) << text.what;
    EXPECT_FALSE(changes.empty()) << text.fix;
    for (const Words& change : changes)
      EXPECT_EQ(refusal(with(words, change)).what, "")
          << text.what << "; " << text.got << "; " << change[0] << " " << change[1];
  }
}

TEST(FittingSizes, WhereNoneFitsAloneTheNextCheckIsTold) {
  const ErrorText text = refusal({"--tp", "3", "--hidden-size", "100", "--num-attention-heads", "7", "--gbs", "7"});
  EXPECT_THAT(text.fix, HasSubstr("the next to fit would be: "));
}

}  // namespace
}  // namespace ranklab
