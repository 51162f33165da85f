// The panel of parity results, on the map of tests/viz/model/parity_sample.h.
#include <filesystem>
#include <fstream>

#include "tests/viz/model/parity_sample.h"
#include "tests/viz/window/window_fixture.h"
#include "viz/model/parity/parity_file.h"
#include "viz/panels/parity_panel.h"

namespace ranklab::viz {
namespace {

class ParityWindowTest : public WindowTest {
 protected:
  ParityPanel& parity() { return dynamic_cast<ParityPanel&>(*app().panel("parity")); }
  void click(ImGuiTestContext& ctx, ParityPlace place) {
    ctx.MouseMoveToPos(parity().middle_of(place).value());
    ctx.MouseClick();
    ctx.Yield(2);
  }
};

TEST_F(ParityWindowTest, chooses_the_first_wrong_tensor_and_then_what_is_clicked) {
  const ParityMap map = samples::parity_map();
  const size_t first = map.first_wrong().value();
  workspace().load_parity(map, "sample");
  app().use_layout("Memory");
  workspace().requests.show_panel = "parity";
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(6);
    IM_CHECK(parity().chosen().has_value());
    IM_CHECK_EQ(parity().chosen()->row, first);
    IM_CHECK_EQ(parity().chosen()->rank, size_t{1});
    click(ctx, {.row = first, .rank = 0});
    IM_CHECK_EQ(parity().chosen()->rank, size_t{0});
    // Its layer is open, others are one line.
    const size_t before = parity().lines();
    ctx.SetRef("//###parity");
    ctx.ItemClick("open all");
    ctx.Yield(2);
    const size_t all = parity().lines();
    IM_CHECK_GT(all, before);
    ctx.ItemClick("only wrong");
    ctx.Yield(2);
    IM_CHECK_LT(parity().lines(), all);
  });
  screenshot("parity");
}

TEST_F(ParityWindowTest, opens_files_and_says_what_to_run_without_one) {
  EXPECT_NE(parity().nothing_to_show(workspace()).find("--out parity.json"), std::string::npos);
  const std::string path = testing::TempDir() + "window_parity.json";
  std::ofstream(path) << parity_file_text(samples::parity_map());
  workspace().requests.open_trace = path;
  drive([&](ImGuiTestContext& ctx) {
    ctx.Yield(4);
    IM_CHECK(workspace().parity() != nullptr);
  });
  EXPECT_EQ(workspace().parity()->rows.size(), samples::parity_map().rows.size());
}

}  // namespace
}  // namespace ranklab::viz
