// The panel of attention over context-parallel ranks, on the run of tests/viz/model/attention_sample.h.
#include "tests/viz/model/attention_sample.h"

#include <imgui_internal.h>

#include "tests/viz/window/window_fixture.h"
#include "viz/panels/attention_panel.h"

namespace ranklab::viz {
namespace {

class AttentionWindowTest : public WindowTest {
 protected:
  AttentionPanel& attention() { return dynamic_cast<AttentionPanel&>(*app().panel("attention")); }
  std::string shown() { return use_words(attention().use(workspace())); }
};

TEST_F(AttentionWindowTest, follows_the_cursor_and_moves_it) {
  workspace().load(TraceStore(samples::attention_run()));
  app().use_layout("Context");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    workspace().set_time(35);
    ctx.Yield(2);
    IM_CHECK_STR_EQ(shown().c_str(), "layers.0.attention, microbatch 0");
    // What the Context layout leaves of 800 x 600, and a tall panel.
    const AttentionPanel::Places low = AttentionPanel::places(attention().use(workspace()), {480, 165});
    IM_CHECK(low.beside && low.blocks.y == 165 && low.blocks.x + low.shares.x < 480);
    const AttentionPanel::Places tall = AttentionPanel::places(attention().use(workspace()), {480, 900});
    IM_CHECK(!tall.beside && tall.blocks.x == 480 && tall.blocks.y + tall.shares.y < 900);
    IM_CHECK(attention().use(workspace()).tiles[1][1].runs(workspace().cursor.time_ns));
    ctx.SetRef("//###attention");
    ctx.ItemClick("next");
    ctx.Yield(2);
    IM_CHECK_EQ(workspace().cursor.time_ns, 110);
    ctx.ItemClick("next");
    ctx.Yield(2);
    IM_CHECK_STR_EQ(shown().c_str(), "layers.1.attention backward, microbatch 0");
    ctx.ItemClick("previous");
    ctx.Yield(2);
    IM_CHECK_EQ(workspace().cursor.time_ns, 110);
    workspace().set_time(35);
    ctx.Yield(2);
  });
  screenshot("attention");
}

TEST_F(AttentionWindowTest, says_what_to_run_without_context_parallelism) {
  workspace().load(TraceStore());
  EXPECT_NE(attention().nothing_to_show(workspace()).find("viz last"), std::string::npos);
  workspace().load(samples::straggler_store());
  EXPECT_NE(attention().nothing_to_show(workspace()).find("train --cp 8"), std::string::npos);
}

}  // namespace
}  // namespace ranklab::viz
