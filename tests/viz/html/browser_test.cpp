// The page in headless Chromium: its program runs, draws, follows keys and the mouse, and no text of a trace runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/viz/html/browser.h"
#include "tests/viz/html/hostile_trace.h"
#include "viz/html/stage_page.h"
#include "viz/model/svg/palette.h"

namespace ranklab::viz {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PageInBrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_browser()) GTEST_SKIP() << "no chromium; do: ./ranklab setup";
  }
  static std::string document(const std::string& page, const std::string& actions, const std::string& place = "") {
    return document_of(page, actions, place);
  }
  std::string page() {
    const TraceStore store(samples::one_microbatch());
    return stage_page(store, samples::step_script(store), 250);
  }
  static std::string key(const std::string& name) {
    return "dispatchEvent(new KeyboardEvent('keydown', {key: '" + name + "'}));";
  }
};

// Whether the pixels of a canvas have more than one colour.
const std::string kLook =
    "for (const id of ['stage', 'timeline']) { const c = document.getElementById(id);"
    "const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
    "const seen = new Set(); for (let i = 0; i < p.length; i += 4) seen.add(p[i] + ',' + p[i + 1] + ',' + p[i + 2]);"
    "document.body.dataset[id] = seen.size > 8 ? 'drawn' : 'blank'; }";

// The colour of a room's picture at a quarter of its width, beside the words, as "#0a854d".
std::string look_at_room(int room) {
  return "{ const c = document.getElementById('stage'), box = script.rooms[" + std::to_string(room) +
         "].box;"
         "const p = c.getContext('2d').getImageData((box[0] + (box[2] - box[0]) / 4) * c.width,"
         "(box[1] + (box[3] - box[1]) * 0.35) * c.height, 1, 1).data;"
         "document.body.dataset.room" +
         std::to_string(room) + " = '#' + [p[0], p[1], p[2]].map(x => x.toString(16).padStart(2, '0')).join(''); }";
}

TEST_F(PageInBrowser, draws_rooms_and_tells_of_them) {
  const std::string dom = document(page(), kLook + look_at_room(0) + look_at_room(1));
  EXPECT_THAT(dom, HasSubstr("data-rooms=\"2\""));
  EXPECT_THAT(dom, HasSubstr("data-time=\"250\""));
  // r1 runs BW0; r0 waits.
  EXPECT_THAT(dom, HasSubstr("data-room1=\"" + hex(colour(Paint::kBackward)) + "\""));
  EXPECT_THAT(dom, AllOf(HasSubstr("data-room0="), Not(HasSubstr("data-room0=\"" + hex(colour(Paint::kBackward))))));
  EXPECT_THAT(dom, HasSubstr("data-stage=\"drawn\""));
  EXPECT_THAT(dom, HasSubstr("data-timeline=\"drawn\""));
  EXPECT_THAT(dom, HasSubstr("r0 waits 200 ns: BW0 is still on r1"));
  EXPECT_THAT(dom, HasSubstr("pp: stages of the pipeline"));
}

TEST_F(PageInBrowser, keys_and_the_mouse_move_the_cursor) {
  // From 250 the next event begins at 300, the next microbatch's action at 310; Home is 0.
  EXPECT_THAT(document(page(), key("ArrowRight") + "draw();"), HasSubstr("data-time=\"300\""));
  EXPECT_THAT(
      document(
          page(),
          "document.getElementById('by').value = 'microbatch'; document.getElementById('forward').click(); draw();"),
      HasSubstr("data-time=\"310\""));
  EXPECT_THAT(document(page(), key("Home") + "draw();"), HasSubstr("data-time=\"0\""));
  const std::string drag =
      "const box = document.getElementById('timeline').getBoundingClientRect();"
      "document.getElementById('timeline').dispatchEvent(new PointerEvent('pointerdown', {bubbles: true, buttons: 1,"
      "clientX: box.left + 44 + (box.width - 44) * 0.75, clientY: box.top + 4})); draw();";
  EXPECT_THAT(document(page(), drag), HasSubstr("data-time=\"300\""));
}

TEST_F(PageInBrowser, plays_to_the_end_and_opens_at_a_place) {
  // A hundred times as fast, a tenth of a second is a whole step; a browser gives few frames to a page that nobody
  // sees.
  EXPECT_THAT(
      document(page(), "document.getElementById('speed').value = 2;" + key(" ") + "lastFrame = 0; frame(1000);"),
      AllOf(HasSubstr("data-time=\"400\""), HasSubstr(">play</button>")));
  const std::string there = document(page(), "", "#t=105");
  EXPECT_THAT(there, HasSubstr("data-time=\"105\""));
  EXPECT_THAT(there, HasSubstr("data-flows=\"1\""));  // the message from r0 to r1
}

// Two messages on ways that cross, from the first rank's stage to the next and from its neighbour's, at every hundredth
// of their time.
TEST_F(PageInBrowser, labels_cover_no_microbatch) {
  const std::string dom = document(page(), R"(
    const c = document.getElementById('stage').getContext('2d'), size = {width: 960, height: 480};
    script.paths = [[0, 2, 0, 0.15, 0.08, 0.38, 0, 0.62, 0.08], [1, 3, 0, 0.39, 0.08, 0.62, 0, 0.85, 0.08]];
    const flows = [0, 1].map(way => ({pairs: [[way, 100]], kind: 0, dtype: {name: 'fp32', color: '#5577bb'},
                                      microbatch: 2, begin: 0, end: 100, length: 100, width: 1}));
    let drawn = 0, covered = 0;
    for (let time = 0; time <= 100; ++time) {
      const labels = labelPlaces(c, flows, time, size);
      drawn += labels.length > 0;
      for (const flow of flows) {
        const [x, y, width, height] = tokenBox(c, curveOf(script.paths[flow.pairs[0][0]], size), flow, time);
        covered += labels.filter(l => l.x < x + width && x < l.x + l.width && l.y < y + height && y < l.y + l.height).length;
      }
    }
    document.body.dataset.drawn = drawn;
    document.body.dataset.covered = covered;)");
  EXPECT_THAT(dom, HasSubstr("data-drawn=\"101\""));
  EXPECT_THAT(dom, HasSubstr("data-covered=\"0\""));
}

TEST_F(PageInBrowser, hostile_texts_stay_texts) {
  const TraceStore store = samples::hostile_store();
  const std::string dom = document(stage_page(store, samples::step_script(store), 150), kLook);
  EXPECT_THAT(dom, HasSubstr("data-rooms=\"2\""));
  EXPECT_THAT(dom, HasSubstr("data-stage=\"drawn\""));
  EXPECT_THAT(dom, Not(HasSubstr("data-hacked")));
  EXPECT_THAT(dom, HasSubstr("&lt;/script&gt;"));  // in the heading, as text
}

}  // namespace
}  // namespace ranklab::viz
