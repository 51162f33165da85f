#include "viz/model/store/deep_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/pipeline/schedules.h"
#include "tests/viz/model/make_trace.h"
#include "viz/model/store/schedule_store.h"

namespace ranklab::viz {
namespace {

using ::testing::HasSubstr;

TEST(DeepLink, ReadsTheExample) {
  const DeepLink link = parse_deep_link("step=12,t=3.4ms,sel=r3/B7");
  EXPECT_EQ(link.step, 12);
  EXPECT_EQ(link.time_ns, 3'400'000);
  EXPECT_EQ(link.selection, "r3/B7");
  EXPECT_EQ(to_text(link), "step=12,t=3.4ms,sel=r3/B7");
  EXPECT_EQ(parse_deep_link(""), DeepLink{});
}

TEST(DeepLink, EveryTimeComesBack) {
  for (const int64_t time :
       {int64_t{0}, int64_t{1}, int64_t{999}, int64_t{1000}, int64_t{1001}, int64_t{3'400'000}, int64_t{123'456'789},
        int64_t{1'500'000'000}, int64_t{86'400'000'000'007}, int64_t{-5}, int64_t{-2'500'000}, kTimeLimit}) {
    const DeepLink link = {.step = {}, .time_ns = time, .selection = {}};
    EXPECT_EQ(parse_deep_link(to_text(link)), link) << to_text(link);
    EXPECT_EQ(parse_deep_link(to_text(link, kScheduleUnitNs), kScheduleUnitNs), link) << to_text(link, kScheduleUnitNs);
  }
  EXPECT_EQ(to_text({.step = {}, .time_ns = 3 * kScheduleUnitNs, .selection = {}}, kScheduleUnitNs), "t=3");
}

TEST(DeepLink, ErrorsNameThePart) {
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, std::string>>{{"step=x", "step is not a number"},
                                                        {"step=-1", "step is not a number"},
                                                        {"step=3.5", "step is not a number"},
                                                        {"t=5", "t has no unit"},
                                                        {"t=5h", "unknown unit"},
                                                        {"t=ms", "t is not a time"},
                                                        {"t=1e300s", "out of range"},
                                                        {"t=nans", "out of range"},
                                                        {"sel=", "sel is empty"},
                                                        {"foo=1", "unknown part"},
                                                        {"step", "a part without ="},
                                                        {"step=1,,t=1ms", "a part without ="}}) {
    try {
      parse_deep_link(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr(part)) << text;
    }
  }
}

TEST(DeepLink, ResolvesInATrace) {
  const TraceStore store =
      schedule_store(make_schedule("1f1b", {.num_ranks = 4, .num_microbatches = 8}), ScheduleCosts{});
  const Goto there = resolve(store, parse_deep_link("step=0,sel=r3/BW7", store.unit_ns()));
  ASSERT_TRUE(there.event);
  EXPECT_EQ(there.time_ns, store.begin_ns(*there.event));
  EXPECT_EQ(there.step, 0);
  const DeepLink back = link_to(store, there.time_ns, there.event);
  EXPECT_EQ(to_text(back, store.unit_ns()), "step=0,t=25,sel=r3/BW7");
  EXPECT_EQ(resolve(store, back).event, there.event);
  EXPECT_THROW(resolve(store, parse_deep_link("step=7")), Error);
  const auto complaint = [&](const char* link) -> std::string {
    try {
      resolve(store, parse_deep_link(link));
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(complaint("sel=r9/F0"), testing::HasSubstr("want ranks 0 to 3"));
  EXPECT_THAT(complaint("step=0,sel=r3/B7"), testing::HasSubstr("want r3/F0, r3/BW0, r3/F1, r3/BW1, ..."));
}

}  // namespace
}  // namespace ranklab::viz
