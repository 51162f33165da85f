// The precision panel, on the run of tests/viz/model/precision_sample.h.
#include <imgui_internal.h>

#include "tests/viz/model/precision_sample.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/panels/precision_panel.h"

namespace ranklab::viz {
namespace {

class PrecisionWindowTest : public WindowTest {
 protected:
  PrecisionPanel& precision() { return dynamic_cast<PrecisionPanel&>(*app().panel("precision")); }
};

TEST_F(PrecisionWindowTest, follows_the_cursor_and_tries_other_formats) {
  workspace().load(TraceStore(samples::precision_run()));
  app().use_layout("Precision");
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    IM_CHECK(precision().shown(workspace()) != nullptr);
    IM_CHECK_EQ(precision().shown(workspace())->step, 0);
    IM_CHECK_STR_EQ(precision().series(workspace())->module.c_str(), "layers.0.attention.qkv");
    workspace().set_time(6500);
    ctx.Yield(2);
    IM_CHECK_EQ(precision().shown(workspace())->step, 4);
    const TensorSample& sample = *precision().shown(workspace());
    IM_CHECK_EQ(std::string(precision().tried_format(sample).name), std::string("E4M3"));
    ctx.SetRef(ctx.WindowInfo("//###precision/details").ID);
    ctx.ComboClick("##format/E2M1");
    ctx.ComboClick("##scale/power of two");
    ctx.Yield(2);
    IM_CHECK_EQ(std::string(precision().tried_format(sample).name), std::string("E2M1"));
    IM_CHECK(precision().tried_scale() == ScaleChoice::kPowerOfTwo);
    ctx.ItemClick("scales");  // of a window of this height one plot at a time
    ctx.Yield(2);
    ctx.SetRef(ctx.WindowInfo("//###precision/details/scales").ID);
    ctx.ItemClick("scales");
    ctx.Yield(2);
    IM_CHECK_GE(precision().chosen_group(), 0);
    ctx.SetRef(ctx.WindowInfo("//###precision/details").ID);
    ctx.ItemClick("layers");
    ctx.Yield(2);
    const ImGuiID layers = ctx.WindowInfo("//###precision/details/layers").ID;
    ctx.SetRef(layers);
    const ImRect area = ctx.ItemInfo("underflow").RectFull;
    ctx.MouseMoveToPos({area.Max.x - 5, area.Min.y + 56});  // the last step of the second layer
    ctx.MouseClick();
    ctx.Yield(2);
    IM_CHECK_EQ(precision().shown(workspace())->step, 8);
    IM_CHECK_STR_EQ(precision().series(workspace())->module.c_str(), "layers.0.mlp.down");
    IM_CHECK(precision().series(workspace())->role == TensorRole::kActivation);
    ctx.SetRef("//###precision");
    ctx.ItemClick("gradients");
    ctx.Yield(2);
    const ImRect row = ctx.ItemInfo("//###precision/**/layers.0.mlp.down").RectFull;
    ctx.MouseMoveToPos({row.Min.x + 20, row.GetCenter().y});  // its middle is the border of two columns
    ctx.MouseClick();
    ctx.Yield(2);
    IM_CHECK(precision().series(workspace())->role == TensorRole::kGradient);
    IM_CHECK_EQ(precision().chosen_group(), -1);
    ctx.SetRef(ctx.WindowInfo("//###precision/details").ID);
    ctx.ComboClick("##format/E4M3");
    ctx.ComboClick("##scale/the run's");
    ctx.Yield(2);
    const TensorSample& gradient = *precision().shown(workspace());
    const RequantizeEstimate tried =
        requantize(gradient, precision().tried_format(gradient), precision().tried_scale());
    IM_CHECK_GT(tried.underflow_share, gradient.underflow_share());
  });
  screenshot("precision");
}

TEST_F(PrecisionWindowTest, says_what_to_run_without_statistics) {
  workspace().load(TraceStore());
  EXPECT_NE(precision().nothing_to_show(workspace()).find("viz last"), std::string::npos);
}

}  // namespace
}  // namespace ranklab::viz
