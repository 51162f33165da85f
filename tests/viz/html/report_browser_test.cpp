// The report in headless Chromium: no script error, every drawing has a size, pointing at a chart reads its value,
// light and dark differ and can be read, no text of a run runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/html/browser.h"
#include "tests/viz/html/hostile_trace.h"
#include "tests/viz/html/report_sample.h"
#include "viz/html/report/report_page.h"

namespace ranklab::viz {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ReportInBrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "no chromium; do: ./ranklab setup";
  }
  static std::string page() { return report_page(samples::report_runs({samples::report_folder("report_browser")})); }
};

// Drawings without a size, texts outside their drawing, and the least contrast of a text with its background.
const std::string kLookAtReport = R"(
const luminance = color => { const [r, g, b] = color.match(/[\d.]+/g).slice(0, 3).map(x => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const x = luminance(a), y = luminance(b); return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
let flat = 0, outside = 0, least = 99;
for (const svg of document.querySelectorAll('svg')) {
  const box = svg.getBoundingClientRect();
  if (box.width < 20 || box.height < 20) { if (!svg.closest('details')) ++flat; continue; }
  for (const text of svg.querySelectorAll('text')) {
    const at = text.getBoundingClientRect();
    if (at.left < box.left - 2 || at.right > box.right + 2 || at.top < box.top - 2 || at.bottom > box.bottom + 2) ++outside;
  }
}
const field = getComputedStyle(document.querySelector('section')).backgroundColor;
for (const one of document.querySelectorAll('td, th, p, h1, h2, h3, figcaption, summary')) {
  const back = one.closest('section') ? field : getComputedStyle(document.body).backgroundColor;
  least = Math.min(least, contrast(getComputedStyle(one).color, back));
}
for (const text of document.querySelectorAll('svg text.ink, svg text.faint, svg tspan.faint')) least = Math.min(least, contrast(getComputedStyle(text).fill, field));
document.body.dataset.look = flat + ' flat, ' + outside + ' outside, contrast ' + (least >= 4.5 ? 'enough' : least.toFixed(2)) + ', wide ' + (document.documentElement.scrollWidth > innerWidth);
document.body.dataset.back = field;
)";

TEST_F(ReportInBrowser, drawings_have_sizes_and_texts_can_be_read_light_and_dark) {
  const std::string light = document_of(page(), kLookAtReport);
  EXPECT_THAT(light, HasSubstr("data-look=\"0 flat, 0 outside, contrast enough, wide false\""));
  EXPECT_THAT(light, HasSubstr("data-back=\"rgb(255, 255, 255)\""));
  const std::string dark = document_of(page(), kLookAtReport, "", "--blink-settings=preferredColorScheme=0");
  EXPECT_THAT(dark, HasSubstr("data-look=\"0 flat, 0 outside, contrast enough, wide false\""));
  EXPECT_THAT(dark, HasSubstr("data-back=\"rgb(17, 19, 23)\""));
}

// The middle of three points: 5 / 2.
TEST_F(ReportInBrowser, pointing_at_a_chart_reads_its_values) {
  const std::string dom = document_of(
      page(),
      "const chart = document.querySelector('svg.chart'), box = chart.getBoundingClientRect();"
      "const plot = chart.dataset.plot.split(' ').map(Number);"
      "const x = box.left + (plot[0] + (plot[1] - plot[0]) * 0.52) * box.width / chart.viewBox.baseVal.width;"
      "chart.dispatchEvent(new PointerEvent('pointermove', {bubbles: true, clientX: x, clientY: box.top + 60}));");
  EXPECT_THAT(dom, AllOf(HasSubstr("step 1\n"), HasSubstr("training: 2.5")));
  EXPECT_THAT(dom, HasSubstr("validation: 3.5"));
}

TEST_F(ReportInBrowser, hostile_texts_stay_texts) {
  const std::string folder =
      samples::report_folder("report_attacked", {.title = samples::kAttack, .setting = samples::kAttack});
  const std::string dom = document_of(report_page(samples::report_runs({folder, folder})), kLookAtReport);
  EXPECT_THAT(dom, HasSubstr("data-look=\"0 flat"));
  EXPECT_THAT(dom, Not(HasSubstr("data-hacked")));
  EXPECT_THAT(dom, HasSubstr("&lt;/script&gt;"));
}

TEST_F(ReportInBrowser, what_is_folded_opens_on_paper) {
  const std::string dom = document_of(page(), "dispatchEvent(new Event('beforeprint'));");
  EXPECT_THAT(dom, AllOf(HasSubstr("<details open=\"\">"), Not(HasSubstr("<details>"))));
}

}  // namespace
}  // namespace ranklab::viz
