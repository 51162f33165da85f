// The panel of sharded parameters, on the run of tests/viz/model/zero_sample.h.
#include "tests/viz/model/zero_sample.h"

#include <imgui_internal.h>

#include "tests/viz/window/window_fixture.h"
#include "viz/panels/zero_panel.h"

namespace ranklab::viz {
namespace {

class ZeroWindowTest : public WindowTest {
 protected:
  ZeroPanel& zero() { return dynamic_cast<ZeroPanel&>(*app().panel("zero")); }
  HeldParameters held(size_t rank) {
    const ZeroTable& table = zero().table(workspace());
    return table.rows[0].parameters_at(rank, workspace().cursor.time_ns, table.stage);
  }
};

TEST_F(ZeroWindowTest, follows_the_cursor_and_shows_other_stages) {
  workspace().load(TraceStore(samples::zero_run(3)));
  app().use_layout("Memory");
  workspace().requests.show_panel = "zero";
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    IM_CHECK_EQ(zero().drawn_stage(workspace()), 3);
    workspace().set_time(160);
    ctx.Yield(2);
    IM_CHECK(held(0) == HeldParameters::kGathered);
    IM_CHECK(held(1) == HeldParameters::kShard);
    workspace().set_time(260);
    ctx.Yield(2);
    IM_CHECK(held(0) == HeldParameters::kShard);
    ctx.SetRef("//###zero");
    ctx.ItemClick("1");
    ctx.Yield(2);
    IM_CHECK_EQ(zero().drawn_stage(workspace()), 1);
    ctx.ItemClick("run");
    ctx.Yield(2);
    IM_CHECK_EQ(zero().drawn_stage(workspace()), 3);
  });
  screenshot("zero");
}

TEST_F(ZeroWindowTest, says_what_to_run_without_buckets) {
  workspace().load(TraceStore());
  EXPECT_NE(zero().nothing_to_show(workspace()).find("viz last"), std::string::npos);
}

}  // namespace
}  // namespace ranklab::viz
