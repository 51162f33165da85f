// The page of a parity map as text, and in headless Chromium: its rows open, cells tell their numbers to a pointer and
// to the keyboard, light and dark can be read, no text of a run runs.
#include "viz/html/parity/parity_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/html/browser.h"
#include "tests/viz/html/hostile_trace.h"
#include "tests/viz/model/parity_sample.h"

namespace ranklab::viz {
namespace {

using samples::parity_map;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ParityPage, MarksTheFirstWrongTensorAndOpensItsLayerAlone) {
  const std::string page = parity_page(parity_map());
  EXPECT_THAT(page, HasSubstr("<a href=\"#r15\">first wrong tensor</a>"));
  EXPECT_THAT(page,
              HasSubstr("<tr id=\"r15\" class=\"tensor first\"><th scope=\"row\">layers.1.norm.weight grad</th>"));
  EXPECT_THAT(page, HasSubstr("<tr id=\"r16\" class=\"tensor later\">"));
  EXPECT_THAT(page, HasSubstr("aria-expanded=\"true\">layers.1: 1 of 3 tensors wrong</button>"));
  EXPECT_THAT(page, HasSubstr("aria-expanded=\"false\">layers.1: 6 right tensors</button>"));
  const size_t open = page.find("aria-expanded=\"true\">");
  EXPECT_EQ(page.find("aria-expanded=\"true\">", open + 1), std::string::npos);
  EXPECT_THAT(page,
              HasSubstr("data-n=\"1.6e+06 of 16 eps allowed&#10;part [0:4, :]&#10;at [2, 1]: 0.5 instead of 0.25\""));
}

TEST(ParityPage, ARightRunHasNothingToBlame) {
  ParityMap map = parity_map();
  map.rows.resize(12);
  map.facts.clear();
  map.same = true;
  map.verdict = "SAME";
  const std::string page = parity_page(map);
  EXPECT_THAT(page, AllOf(HasSubstr("<p class=\"verdict\">SAME</p>"), Not(HasSubstr("first wrong tensor</a>"))));
  EXPECT_THAT(page, Not(HasSubstr("<tr class=\"sentence\">")));
}

TEST(ParityPage, OfManyRanksCellsHaveNoNumbers) {
  ParityMap map = parity_map();
  map.ranks.resize(20, "tp0 pp1");
  for (ParityRow& row : map.rows) row.cells.resize(20, row.cells[0]);
  const std::string page = parity_page(map);
  EXPECT_THAT(page, HasSubstr(">19<br><small class=\"turned\">tp0 pp1</small></th>"));
  EXPECT_THAT(page, AllOf(HasSubstr(">\u2717</td>"), Not(HasSubstr("\u2717 1e5")), Not(HasSubstr("without a number"))));
}

// Least contrast of the cells that have a text and of all words, and whether the page is wider than its window.
const std::string kLookAtMap = R"(
const luminance = color => { const [r, g, b] = color.match(/[\d.]+/g).slice(0, 3).map(x => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (a, b) => { const x = luminance(a), y = luminance(b); return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
let least = 99;
for (const one of document.querySelectorAll('td, th, dt, dd, p, h1, h2, button, .chip, small')) {
  let back = one;
  while (back.parentElement && /, 0\)$/.test(getComputedStyle(back).backgroundColor)) back = back.parentElement;
  if (one.textContent) least = Math.min(least, contrast(getComputedStyle(one).color, getComputedStyle(back).backgroundColor));
}
const whole = document.querySelector('#r15 td:nth-of-type(2)'), seen = [];
const tell = () => seen.push(tip.hidden ? 'hidden' : tip.textContent.replaceAll('\n', '|'));
whole.dispatchEvent(new PointerEvent('pointerover', {bubbles: true})); tell();
document.querySelector('.map .no').dispatchEvent(new PointerEvent('pointerover', {bubbles: true})); tell();
document.querySelector('[data-of]').dispatchEvent(new PointerEvent('pointerover', {bubbles: true})); tell();
document.querySelector('.map [tabindex="0"]').focus();
const press = key => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
press('ArrowRight'); press('ArrowDown'); tell();
press('Escape'); tell();
const button = document.querySelector('button[aria-controls=u0]');
button.click();
seen.push(document.getElementById('u0').hidden, button.getAttribute('aria-expanded'));
document.querySelector('[data-all=close]').click();
seen.push([...document.querySelectorAll('.map tbody')].filter(body => body.hidden).length);
document.body.dataset.look = 'contrast ' + (least >= 4.5 ? 'enough' : least.toFixed(2)) + ', wide ' + (document.documentElement.scrollWidth > innerWidth);
document.body.dataset.seen = seen.join('; ');
document.body.dataset.back = getComputedStyle(whole).backgroundColor;
)";

// What the script above wrote.
std::string said(const std::string& dom, const std::string& name) {
  const std::string begin = "data-" + name + "=\"";
  const size_t at = dom.find(begin) + begin.size();
  return dom.substr(at, dom.find('"', at) - at);
}

class ParityInBrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "no chromium; do: ./ranklab setup";
  }
};

TEST_F(ParityInBrowser, CellsTellTheirNumbersAndLayersOpen) {
  const std::string dom = document_of(parity_page(parity_map()), kLookAtMap);
  EXPECT_EQ(said(dom, "look"), "contrast enough, wide false");
  EXPECT_EQ(said(dom, "seen"),
            "layers.1.norm.weight grad|rank 1, tp1|1.6e+06 of 16 eps allowed|part [0:4, :]|at [2, 1]: 0.5 instead of "
            "0.25; "
            "head loss|rank 1, tp1|has no part of it; "
            "layers.0.norm input, the furthest of 6 tensors|rank 0, tp0|0 of 16 eps allowed|part [0:4, :]; "
            "layers.1.norm grad_input|rank 1, tp1|6 of 16 eps allowed|part [0:4, :]|at [2, 1]: 0.5 instead of 0.25; "
            "hidden; false; true; 8");
  EXPECT_EQ(said(dom, "back"), "rgb(163, 34, 34)");
}

TEST_F(ParityInBrowser, DarkCanBeReadAndHostileTextsStayTexts) {
  ParityMap map = parity_map(samples::kAttack);
  map.verdict = map.facts[0].text = map.rows[15].name = map.ranks[1] = samples::kAttack;
  map.rows[15].cells[1]->slice = samples::kAttack;
  const std::string dom = document_of(parity_page(map), kLookAtMap, "", "--blink-settings=preferredColorScheme=0");
  EXPECT_THAT(said(dom, "look"), HasSubstr("contrast enough"));
  EXPECT_EQ(said(dom, "back"), "rgb(251, 181, 97)");
  EXPECT_THAT(dom, AllOf(Not(HasSubstr("data-hacked")), HasSubstr("&lt;/script&gt;")));
}

}  // namespace
}  // namespace ranklab::viz
