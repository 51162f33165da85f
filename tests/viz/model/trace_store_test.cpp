#include "viz/model/store/trace_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/pipeline/schedules.h"
#include "tests/viz/model/expert_sample.h"
#include "viz/model/store/event_details.h"
#include "viz/model/store/schedule_store.h"
#include "viz/model/store/selection.h"
#include "viz/model/tables/type_table.h"

namespace ranklab::viz {
namespace {

using samples::compute;
using samples::phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> row_labels(const RankRows& rank) {
  std::vector<std::string> labels;
  for (const Row& row : rank.rows) labels.push_back(row.label);
  return labels;
}

// step 0: [0, 100) with F [0, 40) and, inside, gemm [10, 20); step 1: [100, 150) with F [110, 140).
TraceStore nested_store() {
  Tracer tracer(3, "dp0 tp1 pp1");
  tracer.record(compute(tracer, "gemm", 10, 20, 0));
  tracer.record(compute(tracer, "F", 0, 40, 0, 0));
  tracer.record(samples::counter(tracer, "loss", 100, 5.5, 0));
  tracer.record(phase(tracer, "step", 0, 100, 0));
  tracer.record(compute(tracer, "F", 110, 140, 1, 0));
  tracer.record(phase(tracer, "step", 100, 150, 1));
  return TraceStore(samples::file_of({tracer.take()}), "nested");
}

TEST(TraceStore, RowsAndNesting) {
  const TraceStore store = nested_store();
  ASSERT_EQ(store.ranks().size(), 1U);
  const RankRows& rank = store.rank(0);
  EXPECT_EQ(rank.label, "r3 dp0 tp1 pp1");
  EXPECT_THAT(row_labels(rank), ElementsAre("phase", "compute"));
  ASSERT_EQ(rank.rows[1].tracks.size(), 2U);
  EXPECT_THAT(rank.rows[1].tracks[0].begin_ns, ElementsAre(0, 110));
  EXPECT_THAT(rank.rows[1].tracks[1].begin_ns, ElementsAre(10));
  EXPECT_EQ(store.range(), (TimeRange{0, 150}));
  ASSERT_EQ(store.steps().size(), 2U);
  EXPECT_EQ(store.steps()[1].range, (TimeRange{100, 150}));
  EXPECT_EQ(store.step_at(99), 0);
  EXPECT_EQ(store.step_at(100), 1);
  EXPECT_EQ(store.step_at(-1), -1);
  EXPECT_FALSE(store.step_window(2));
  EXPECT_TRUE(store.has_clock(TraceClock::kVirtual));
  EXPECT_FALSE(store.has_clock(TraceClock::kWall));
}

TEST(TraceStore, FindsTheDeepestSliceAtATime) {
  const TraceStore store = nested_store();
  EXPECT_EQ(store.name(*store.at(0, 1, 15)), "gemm");
  EXPECT_EQ(store.name(*store.at(0, 1, 20)), "F");
  EXPECT_EQ(store.name(*store.at(0, 1, 39)), "F");
  EXPECT_FALSE(store.at(0, 1, 40));
}

TEST(TraceStore, StepsAlongARowAndThroughAllEvents) {
  const TraceStore store = nested_store();
  const EventRef first = *store.at(0, 1, 5);
  const EventRef next = *store.next_on_row(first);
  EXPECT_EQ(store.begin_ns(next), 110);
  EXPECT_EQ(*store.previous_on_row(next), first);
  EXPECT_FALSE(store.next_on_row(next));
  EXPECT_FALSE(store.previous_on_row(first));
  EXPECT_EQ(store.begin_ns(*store.next_event(10)), 100);
  EXPECT_EQ(store.begin_ns(*store.previous_event(100)), 10);
  EXPECT_FALSE(store.next_event(110));
  EXPECT_FALSE(store.previous_event(0));
}

TEST(TraceStore, SelectionsByText) {
  const TraceStore store = schedule_store(
      make_schedule("interleaved-1f1b", {.num_ranks = 2, .num_microbatches = 4, .num_chunks = 2}), ScheduleCosts{});
  const EventRef ref = *find_selection(store, "r1/3BW2");
  EXPECT_EQ(store.text(ref), "3BW2");
  EXPECT_EQ(store.event(ref).stage, 3);
  EXPECT_EQ(selection_text(store, ref), "r1/3BW2");
  EXPECT_FALSE(find_selection(store, "r1/F9"));
  EXPECT_FALSE(find_selection(store, "r7/F0"));
  EXPECT_FALSE(find_selection(store, "r1/#100000"));
  EXPECT_FALSE(find_selection(store, "r1/3BW2", 5));
  // Every event's own text finds it again.
  for (size_t r = 0; r < store.ranks().size(); ++r) {
    for (size_t e = 0; e < store.trace(r).events.size(); ++e) {
      const std::string text = selection_text(store, {r, e});
      EXPECT_EQ(find_selection(store, text, store.event({r, e}).step), (EventRef{r, e})) << text;
    }
  }
}

TEST(TraceStore, BadSelectionsNameThePart) {
  const TraceStore store = nested_store();
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, std::string>>{{"3/F0", "does not begin with a rank"},
                                                        {"rx/F0", "no rank number"},
                                                        {"r3F0", "no /"},
                                                        {"r3/", "no letters"},
                                                        {"r3/7", "no letters"},
                                                        {"r3/#x", "no event number"},
                                                        {"r3/F99999999999999999999", "too large"}}) {
    try {
      find_selection(store, text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(part)) << text;
    }
  }
}

// A trace is somebody's file: what it names must not command the terminal that shows it.
TEST(TraceStore, NamesAndTitleOfAFileCannotCommandATerminal) {
  TraceFile file;
  file.title = "\x1b]0;owned\x07 model";
  RankTrace& trace = file.ranks.emplace_back();
  trace.label = "dp0\x1b[2J";
  trace.names = {"layers.0\x1b[31m"};
  trace.events.emplace_back();
  const TraceStore store(std::move(file), "test");
  EXPECT_EQ(store.title(), "?]0;owned? model");
  EXPECT_EQ(store.trace(0).label, "dp0?[2J");
  EXPECT_EQ(store.trace(0).names, std::vector<std::string>{"layers.0?[31m"});
}

TEST(TraceStore, SearchFindsNamesAndBlockTexts) {
  const TraceStore store = nested_store();
  EXPECT_EQ(search_events(store, "GEM").size(), 1U);
  EXPECT_EQ(search_events(store, "f0").size(), 2U);
  EXPECT_EQ(search_events(store, "").size(), 0U);
  EXPECT_EQ(search_events(store, "f", 1).size(), 1U);
}

// What was appended event by event lies as what was loaded at once.
TEST(TraceStore, AppendGivesTheSameRows) {
  const TraceStore whole = schedule_store(make_schedule("1f1b", {.num_ranks = 4, .num_microbatches = 8}), {.c = 0.25});
  TraceStore live;
  for (size_t r = 0; r < whole.traces().size(); ++r) {
    const RankTrace& trace = whole.trace(whole.traces().size() - 1 - r);
    for (const Event& event : trace.events) {
      RankTrace more = trace;
      more.events = {event};
      live.append(more);
    }
  }
  ASSERT_EQ(live.num_events(), whole.num_events());
  EXPECT_EQ(live.range(), whole.range());
  ASSERT_EQ(live.ranks().size(), whole.ranks().size());
  for (size_t r = 0; r < whole.ranks().size(); ++r) {
    EXPECT_EQ(live.trace(r), whole.trace(r));
    ASSERT_EQ(row_labels(live.rank(r)), row_labels(whole.rank(r)));
    for (size_t row = 0; row < whole.rank(r).rows.size(); ++row) {
      ASSERT_EQ(live.rank(r).rows[row].tracks.size(), whole.rank(r).rows[row].tracks.size());
      for (size_t d = 0; d < whole.rank(r).rows[row].tracks.size(); ++d) {
        const Track& a = live.rank(r).rows[row].tracks[d];
        const Track& b = whole.rank(r).rows[row].tracks[d];
        EXPECT_EQ(a.event, b.event);
        EXPECT_EQ(a.painted_ns, b.painted_ns);
      }
    }
  }
}

TEST(TraceStore, AppendedEventsKeepTheirNumbers) {
  const TraceFile file = samples::expert_run();
  const TraceStore whole(file);
  TraceStore live;
  for (const RankTrace& rank : file.ranks) {
    for (size_t e = 0; e < rank.events.size(); ++e) {
      RankTrace more = rank;  // a batch of one, with its own array
      more.events = {rank.events[e]};
      more.arrays.clear();
      if (const uint32_t array = rank.events[e].array; array > 0) {
        more.arrays = {rank.arrays[array - 1]};
        more.events[0].array = 1;
      }
      live.append(more);
    }
  }
  for (size_t e = 0; e < file.ranks[5].events.size(); ++e) {
    const auto there = whole.array(5, whole.event({5, e})), here = live.array(5, live.event({5, e}));
    EXPECT_TRUE(std::ranges::equal(there, here)) << e;
    EXPECT_EQ(whole.event({5, e}).purpose, live.event({5, e}).purpose);
  }
  RankTrace dangling;
  dangling.names = {"x"};
  dangling.events.resize(1);
  dangling.events[0].array = 3;
  EXPECT_EQ(TraceStore(samples::file_of({dangling})).event({0, 0}).array, 0U);
}

TEST(TraceStore, DetailsTellWhatACallMakesOfTypes) {
  const TraceStore plain = samples::straggler_store();
  TraceFile file = samples::file_of({plain.trace(0), plain.trace(1)});
  for (Event& event : file.ranks[1].events)
    if (event.kind == EventKind::kCollective) event.types = *TypeChange::parsed("partial -> replicated over dp");
  const TraceStore store(std::move(file));
  std::string all;
  for (const Detail& detail : event_details(store, *find_selection(store, "r1/AR0@dp")))
    all += detail.key + "=" + detail.value + "\n";
  EXPECT_THAT(all, HasSubstr("types=partial -> replicated over dp\n"));
  const std::vector<TypeRow> rows = type_table(store, store.whole());
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].op, "all_reduce dp");
  EXPECT_EQ(rows[0].count, 1);
}

TEST(TraceStore, DetailsTellPurposePartsAndTokens) {
  const TraceStore store(samples::expert_run());
  const auto detail = [&](const std::string& word, const std::string& key) -> std::string {
    for (const Detail& one : event_details(store, search_events(store, word, 1).at(0)))
      if (one.key == key) return one.value;
    return "no " + key;
  };
  EXPECT_EQ(detail("all_to_all", "for"), "dispatch");
  // 512 B a row: 304 272 240 208 288 224 256 256 tokens in layer 1, step 0.
  EXPECT_EQ(detail("all_to_all", "bytes to members"), "155648 139264 122880 106496 147456 114688 131072 131072");
  EXPECT_EQ(detail("expert load", "tokens of experts"), "2432 2176 1920 1664 2304 1792 2048 2048");
  EXPECT_EQ(detail("expert load", "layer"), "1");
  EXPECT_EQ(detail("expert bias", "bias of experts"), "-0.001 -0.001 0.001 0.001 -0.001 0.001 0 0");
}

TEST(TraceStore, DetailsTellTheRateOfWork) {
  Tracer tracer(0, "");
  Event module = samples::compute(tracer, "layers.0", 0, 100);
  module.kind = EventKind::kModule;
  module.value = 34.5e6;  // FLOPs in 100 ns
  tracer.record(module);
  const TraceStore store(samples::file_of({tracer.take()}));
  std::string rate;
  for (const Detail& one : event_details(store, {0, 0}))
    if (one.key == "rate") rate = one.value;
  EXPECT_EQ(rate, "345 TFLOP/s");
}

TEST(TraceStore, AParentThatComesLastMovesItsChildrenDown) {
  TraceStore live;
  Tracer tracer(0, "");
  for (const auto& [name, begin, end] : std::vector<std::tuple<const char*, int64_t, int64_t>>{
           {"c", 10, 20}, {"b", 5, 30}, {"d", 40, 50}, {"a", 0, 60}, {"e", 70, 80}}) {
    tracer.record(compute(tracer, name, begin, end));
    live.append(tracer.take());
  }
  const Row& row = live.rank(0).rows[0];
  ASSERT_EQ(row.tracks.size(), 3U);
  EXPECT_THAT(row.tracks[0].begin_ns, ElementsAre(0, 70));
  EXPECT_THAT(row.tracks[1].begin_ns, ElementsAre(5, 40));
  EXPECT_THAT(row.tracks[2].begin_ns, ElementsAre(10));
  EXPECT_EQ(live.name(*live.at(0, 0, 12)), "c");
}

// A module that fills its action, and a child that fills the module: both end, and are recorded, before what they are
// in.
TEST(TraceStore, OfSlicesOfTheSameExtentTheOuterIsAbove) {
  Tracer tracer(0, "");
  const auto module = [&](const char* name) {
    Event event = compute(tracer, name, 10, 20);
    event.kind = EventKind::kModule;
    event.microbatch = 0;
    return event;
  };
  std::vector<Event> events = {module("layers.0.mlp"), module("layers.0"), compute(tracer, "F", 10, 20)};
  events.back().microbatch = 0;
  TraceStore live;
  for (const Event& event : events) {
    tracer.record(event);
    live.append(tracer.take_events());
  }
  Tracer whole(0, "");
  for (Event event : events) {
    event.name = whole.intern(live.trace(0).names[event.name]);
    whole.record(event);
  }
  const TraceStore at_once(samples::file_of({whole.take()}));
  for (const TraceStore* store : {static_cast<const TraceStore*>(&live), &at_once}) {
    const Row& row = store->rank(0).rows[0];
    ASSERT_EQ(row.tracks.size(), 3U);
    for (size_t depth = 0; depth < 3; ++depth) ASSERT_EQ(row.tracks[depth].size(), 1U);
    EXPECT_EQ(store->name({0, row.tracks[0].event[0]}), "F");
    EXPECT_EQ(store->name({0, row.tracks[1].event[0]}), "layers.0");
    EXPECT_EQ(store->name({0, row.tracks[2].event[0]}), "layers.0.mlp");
  }
}

TEST(TraceStore, DetailsSayUnitAndSource) {
  const TraceStore store = samples::straggler_store();
  const EventRef reduce = *find_selection(store, "r1/AR0@dp");
  std::string all;
  for (const Detail& detail : event_details(store, reduce))
    all += detail.key + "=" + detail.value + "[" + detail.source + "] ";
  EXPECT_THAT(all, HasSubstr("group=ranks 0, 1[]"));
  EXPECT_THAT(all, HasSubstr("duration=30 ns[model]"));
  EXPECT_THAT(all, HasSubstr("peer wait=40 ns[model]"));
  EXPECT_THAT(all, HasSubstr("wire bytes=500 B[measured]"));
}

TEST(TraceStore, CallsKnowTheirSides) {
  const TraceStore store = samples::straggler_store();
  const MatchedCall* call = store.calls().of(*find_selection(store, "r1/AR0@dp"));
  ASSERT_NE(call, nullptr);
  EXPECT_THAT(call->group, ElementsAre(0, 1));
  EXPECT_EQ(call->sides.size(), 2U);
  EXPECT_EQ(store.calls().of(*find_selection(store, "r1/F0")), nullptr);
}

// An outer update that the next step hides: it ends there, and its own step is no longer for that.
TEST(TraceStore, ACollectiveThatOutlastsItsStepTakesNoneOfItsTime) {
  Tracer tracer(0, "");
  tracer.record(compute(tracer, "F", 0, 40, 0, 0));
  tracer.record(phase(tracer, "step", 0, 100, 0));
  tracer.record(samples::call(tracer, {.posted = 90, .begin = 95, .end = 130, .step = 0}));
  tracer.record(compute(tracer, "F", 100, 140, 1, 0));
  tracer.record(phase(tracer, "step", 100, 150, 1));
  const TraceStore store(samples::file_of({tracer.take()}));
  EXPECT_EQ(store.step_window(0)->range, (TimeRange{0, 100}));
  EXPECT_EQ(store.step_window(1)->range, (TimeRange{100, 150}));
  Tracer without_phases(0, "");
  without_phases.record(compute(without_phases, "F", 0, 40, 0, 0));
  without_phases.record(samples::call(without_phases, {.posted = 40, .begin = 45, .end = 60, .step = 0}));
  const TraceStore imported(samples::file_of({without_phases.take()}));
  EXPECT_EQ(imported.step_window(0)->range, (TimeRange{0, 60})) << "nothing else tells when the step ended";
}

}  // namespace
}  // namespace ranklab::viz
