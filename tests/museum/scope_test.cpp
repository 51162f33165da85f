// Bugs belong to the thread and the scope that they were set for; names are checked before a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/config/exhibit_config.h"
#include "core/museum/exhibit.h"
#include "core/museum/hunt.h"

namespace ranklab {
namespace {

TEST(InjectedBug, IsInItsScopeAndThreadAlone) {
  EXPECT_FALSE(injected(InjectedBug::kNormUnreduced));
  const InjectedBugs outer(bugs_named("norm-unreduced,stale-gather"));
  EXPECT_TRUE(injected(InjectedBug::kNormUnreduced));
  EXPECT_TRUE(injected(InjectedBug::kStaleGather));
  EXPECT_FALSE(injected(InjectedBug::kZeroPadding));
  {
    // A run inside has only its own.
    const InjectedBugs inner(bugs_named("zero-padding"));
    EXPECT_FALSE(injected(InjectedBug::kNormUnreduced));
    EXPECT_TRUE(injected(InjectedBug::kZeroPadding));
  }
  EXPECT_TRUE(injected(InjectedBug::kNormUnreduced));
  EXPECT_FALSE(injected(InjectedBug::kZeroPadding));
  bool elsewhere = true;
  std::jthread([&] { elsewhere = injected(InjectedBug::kNormUnreduced); }).join();
  EXPECT_FALSE(elsewhere);
}

TEST(InjectedBug, UnknownNamesAreRefusedWithTheNearest) {
  TrainConfig config;
  config.inject = "norm-unreduced,stale-gater";
  try {
    resolve(config);
    FAIL() << "resolved";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("did you mean 'stale-gather'"), std::string::npos) << error.what();
  }
}

TEST(Museum, HasAFileAndABugForEachRow) {
  std::set<std::string> names;
  std::set<InjectedBug> bugs;
  for (const Exhibit* exhibit : exhibits()) {
    SCOPED_TRACE(exhibit->name);
    EXPECT_TRUE(names.insert(exhibit->name).second);
    EXPECT_TRUE(bugs.insert(exhibit->bug).second);
    const std::string story = exhibit->what_happened, url = exhibit->url;
    EXPECT_GT(std::count(story.begin(), story.end(), '.'), 2) << "a story of a few sentences";
    EXPECT_TRUE(url.starts_with("https://"));
    EXPECT_TRUE(std::set<std::string>({"tp", "cp", "dp", "pp", "ep", "none"}).contains(exhibit->guilty_axis));
    EXPECT_LE(resolve(config_of_flags(exhibit_flags(*exhibit, "/nowhere"))).mesh.world_size(), 8);
  }
  EXPECT_EQ(bugs.size(), static_cast<size_t>(InjectedBug::kCount)) << "a bug has no exhibit";
  EXPECT_GE(names.size(), 24U);
}

TEST(Hunts, AreTheExhibitsInAnotherOrderAndGraded) {
  std::set<const Exhibit*> hunted;
  int in_place = 0;
  for (int number = 1; number <= hunt_count(); ++number) {
    const Hunt hunt = hunt_numbered(number);
    in_place += hunt.exhibit == exhibits()[static_cast<size_t>(number - 1)] ? 1 : 0;
    EXPECT_TRUE(hunted.insert(hunt.exhibit).second);
    EXPECT_EQ(bugs_named(hunt.name()), std::vector<InjectedBug>{hunt.exhibit->bug});
    // What is named in the pattern's place is right, another module of the model and another axis are not.
    std::string right = hunt.exhibit->guilty_module;
    std::replace(right.begin(), right.end(), '*', '0');
    std::replace(right.begin(), right.end(), '?', 'q');
    EXPECT_TRUE(grade(hunt, right, hunt.exhibit->guilty_axis).passed()) << right;
    EXPECT_FALSE(grade(hunt, right, std::string("tp") == hunt.exhibit->guilty_axis ? "dp" : "tp").axis);
    if (std::string("*") != hunt.exhibit->guilty_module) {
      EXPECT_FALSE(grade(hunt, "nothing", hunt.exhibit->guilty_axis).module) << right;
    }
  }
  EXPECT_GE(hunted.size(), 20U);
  EXPECT_EQ(story_command("hunt-7"), "ranklab lesson hunt 7") << "does not say what it is";
  EXPECT_EQ(story_command("stale-gather,norm-averaged"), "ranklab museum show stale-gather");
  EXPECT_LT(in_place, 6);
}

}  // namespace
}  // namespace ranklab
