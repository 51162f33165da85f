// The page without a browser: its data, its size, and that no text of a trace gets out of where it belongs.
#include "viz/html/stage_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "core/base/error.h"
#include "tests/viz/html/hostile_trace.h"
#include "tests/viz/model/zero_sample.h"
#include "viz/html/page_data.h"
#include "viz/html/page_text.h"
#include "viz/model/store/generated_trace.h"
#include "viz/model/svg/palette.h"

namespace ranklab::viz {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

json data_of(const TraceStore& store, int64_t open_ns = 0) {
  return json::parse(page_data(store, samples::step_script(store), open_ns));
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// What lies between the tags of the data.
std::string data_in(const std::string& page) {
  const std::string begin = "<script id=\"data\" type=\"application/json\">", end = "</script>";
  const size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find(end, from) - from);
}

TEST(StagePageData, says_what_the_script_says) {
  const TraceStore store(samples::one_microbatch());
  const json data = data_of(store, 250);
  EXPECT_EQ(data["length"], 400);
  EXPECT_EQ(data["open"], 250);
  ASSERT_EQ(data["rooms"].size(), 2u);
  const json& room = data["rooms"][0];
  EXPECT_EQ(room["name"], "r0");
  // Begin, length, text, paint, microbatch: F0 and BW0.
  const std::vector<int64_t> actions = room["actions"];
  ASSERT_EQ(actions.size(), 10u);
  EXPECT_EQ(actions[0], 0);
  EXPECT_EQ(actions[1], 100);
  EXPECT_EQ(data["texts"][static_cast<size_t>(actions[2])], "F0");
  EXPECT_EQ(data["paints"][static_cast<size_t>(actions[3])]["color"], hex(colour(Paint::kForward)));
  EXPECT_EQ(actions[5], 310);
  // The wait for BW0 on r1.
  const std::vector<int64_t> waits = room["waits"];
  EXPECT_EQ(waits[0], 100);
  EXPECT_EQ(waits[1], 200);
  EXPECT_EQ(data["texts"][static_cast<size_t>(waits[2])], "BW0 is still on r1");
  EXPECT_EQ(data["causes"][static_cast<size_t>(waits[3])]["name"], "dependency");
  EXPECT_EQ(room["limit"], 2000.0);
  // Two messages; both ways.
  EXPECT_EQ(data["flows"].size(), 20u);
  EXPECT_THAT(data["flowsUntil"].get<std::vector<int64_t>>(), ElementsAre(110, 310));
  EXPECT_EQ(data["paths"].size(), 2u);
  EXPECT_THAT(data["microbatches"].get<std::vector<int64_t>>(), ElementsAre(0, 110, 210, 310));
  EXPECT_EQ(data["lines"].size(), data["lineTimes"].size());
  EXPECT_EQ(data["lines"][0], "r0 runs F0: forward of microbatch 0");
}

TEST(StagePageData, times_count_from_the_step) {
  TraceFile file = samples::one_microbatch();
  for (RankTrace& rank : file.ranks)
    for (Event& event : rank.events) {
      for (int64_t* time : {&event.virtual_begin_ns, &event.virtual_end_ns, &event.virtual_posted_ns,
                            &event.virtual_matched_ns, &event.virtual_first_byte_ns})
        if (*time != kNoTime) *time += 1'000'000;
    }
  const TraceStore later(std::move(file)), store(samples::one_microbatch());
  EXPECT_EQ(data_of(later, 1'000'000), data_of(store));
}

TEST(StagePageData, shards_are_states_over_time) {
  const TraceStore store(samples::zero_run(3));
  const json data = data_of(store);
  ASSERT_EQ(data["shards"].size(), 1u);  // experts are not sharded
  const json& cell = data["shards"][0]["cells"][0];
  const int64_t begin = store.step_window(0)->range.begin_ns;
  const std::vector<int64_t> history = cell["history"];
  ASSERT_GE(history.size(), 6u);
  EXPECT_THAT(std::vector<int64_t>(history.begin(), history.begin() + 6),
              ElementsAre(100 - begin, 1, 150 - begin, 2, 200 - begin, 0));
  EXPECT_TRUE(data_of(TraceStore(samples::zero_run(1)))["shards"].empty());
}

TEST(StagePage, no_text_of_a_trace_is_markup_or_script) {
  const TraceStore store = samples::hostile_store();
  const std::string page = stage_page(store, samples::step_script(store));
  const TraceStore plain(samples::one_microbatch());
  const std::string other = stage_page(plain, samples::step_script(plain));
  // As many tags as without any hostile text: none was added, none was closed early.
  for (const char* tag : {"<script", "</script", "<!--", "<img", "<b>", "<title"})
    EXPECT_EQ(count(page, tag), count(other, tag)) << tag;
  const std::string data = data_in(page);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_THAT(data, Not(HasSubstr("&")));
  const json read = json::parse(data);  // whole, and valid UTF-8
  EXPECT_THAT(read["title"].get<std::string>(), HasSubstr(samples::kAttack));
  EXPECT_THAT(read["texts"].dump(-1, ' ', false, json::error_handler_t::replace),
              HasSubstr("hacked='yes'</script><!--"));
  EXPECT_EQ(count(page, "@DATA@"),
            2u);  // the trace's own, in the title and in the data; nothing was put in their place
}

TEST(StagePage, refers_to_no_network) {
  const TraceStore store(samples::one_microbatch());
  const std::string page = stage_page(store, samples::step_script(store));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* part : {"http:", "https:", "src=", "href=", "url(", "import ", "fetch(", "XMLHttpRequest",
                           "WebSocket", "innerHTML", "eval("})
    EXPECT_EQ(count(page, part), 0u) << part;
  // Every part of the page is in it.
  for (const PagePart& part : page_parts()) {
    if (part.name == "page.html") continue;
    EXPECT_EQ(count(page, part.text), 1u) << part.name;
  }
  EXPECT_FALSE(std::regex_search(page, std::regex("@[A-Z]+@")));
}

TEST(StagePage, a_large_step_of_eight_ranks_is_below_three_megabytes) {
  const TraceStore store(generated_trace(100'000));
  const StageScript script = stage_script(store, store.step_window(store.steps()[1].step).value());
  EXPECT_EQ(script.rooms.size(), 8u);
  EXPECT_LT(stage_page(store, script).size(), 3'000'000u);
  // More than anyone could follow is thinned out, and said to be so.
  const StageScript whole = stage_script(store, store.whole());
  EXPECT_LT(stage_page(store, whole).size(), 6'000'000u);
}

TEST(StagePage, is_the_same_each_time) {
  const TraceStore store(generated_trace(2'000));
  const StageScript script = stage_script(store, store.whole());
  EXPECT_EQ(stage_page(store, script), stage_page(store, stage_script(store, store.whole())));
}

TEST(StagePage, opens_where_much_is_to_be_seen) {
  const TraceStore store(samples::one_microbatch());
  const StageScript script = samples::step_script(store);
  const int64_t moment = telling_moment(script);
  // r0 waits for r1, which works: 110 to 300.
  EXPECT_GE(moment, 100);
  EXPECT_LT(moment, 300);
  EXPECT_EQ(json::parse(data_in(stage_page(store, script)))["open"], moment);
  EXPECT_EQ(json::parse(data_in(stage_page(store, script, 7)))["open"], 7);
}

TEST(StagePage, refuses_a_trace_with_nothing_to_play) {
  const TraceStore store;
  EXPECT_THROW(stage_page(store, stage_script(store, store.whole())), Error);
}

}  // namespace
}  // namespace ranklab::viz
