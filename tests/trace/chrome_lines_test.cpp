// The fast reader against the general one: equal on everything our writer writes, and on what others make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "core/base/error.h"
#include "core/trace/chrome_events.h"
#include "core/trace/chrome_line.h"
#include "core/trace/chrome_reader.h"
#include "core/trace/chrome_writer.h"
#include "core/trace/text_lines.h"
#include "tests/trace/sample_trace.h"

namespace ranklab {
namespace {

using ::testing::HasSubstr;
using trace_samples::sample_traces;
using trace_samples::TemporaryPath;

// Any values the writer can meet, each field at its default in half of the cases.
Event event_as_written(std::mt19937_64& random, uint32_t names) {
  const auto chance = [&] { return random() % 2 == 0; };
  const auto time = [&] {
    return static_cast<int64_t>(random() % 1'000'000'000'000) - (random() % 8 == 0 ? 1'000'000 : 0);
  };
  Event e;
  e.kind = static_cast<EventKind>(random() % static_cast<size_t>(EventKind::kCount));
  e.name = static_cast<uint32_t>(random() % names);
  const bool collective = e.kind == EventKind::kCollective;
  if (collective || chance()) e.step = static_cast<int>(random() % 1000);
  if (chance()) e.microbatch = static_cast<int>(random() % 64);
  if (chance()) e.stage = static_cast<int>(random() % 16);
  if (collective) {
    e.axis = static_cast<Axis>(random() % static_cast<size_t>(Axis::kCount));
    e.verb = static_cast<Verb>(random() % static_cast<size_t>(Verb::kCount));
    e.dtype = static_cast<DType>(random() % (static_cast<size_t>(DType::kOther) + 1));
    e.purpose = static_cast<Purpose>(random() % static_cast<size_t>(Purpose::kCount));
    if (chance()) e.types = TypeChange(static_cast<uint32_t>(random() % TypeChange::kEnd));
    e.peer = static_cast<int>(random() % 8);
    e.tag = static_cast<int>(random() % 100) - 50;
    e.sequence = static_cast<int64_t>(random() % 100000);
    for (int64_t Event::*field : {&Event::virtual_posted_ns, &Event::virtual_matched_ns, &Event::virtual_first_byte_ns,
                                  &Event::wall_matched_ns, &Event::virtual_exposed_ns, &Event::virtual_peer_wait_ns,
                                  &Event::logical_bytes, &Event::algorithm_bytes, &Event::wire_bytes}) {
      if (chance()) e.*field = time();
    }
  }
  e.virtual_begin_ns = time();
  e.wall_begin_ns = chance() ? time() : 0;
  const bool moment = e.kind == EventKind::kCounter || e.kind == EventKind::kInstant;
  e.virtual_end_ns = e.virtual_begin_ns + (moment ? 0 : static_cast<int64_t>(random() % 1'000'000));
  e.wall_end_ns = e.wall_begin_ns + (moment ? 0 : static_cast<int64_t>(random() % 1'000'000));
  if (e.kind == EventKind::kCounter) {
    const double special[] = {0, -0.0, 1e300, 1e-300, 123456789, 0.1, std::numeric_limits<double>::infinity()};
    e.value = special[random() % std::size(special)];
  }
  return e;
}

TEST(ChromeLines, EqualToTheGeneralReaderOnRandomTraces) {
  const TemporaryPath path("lines_random.json");
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<RankTrace> traces;
    for (const int rank : {0, 3, 4}) {
      RankTrace trace;
      trace.global_rank = rank;
      trace.label = "dp" + std::to_string(rank);
      trace.names = {"F", "BW", "memory/parameters", "a/value", "caf\xC3\xA9 \"x\"", "tab\there", "loss", "a\\b", ""};
      trace.groups = {{Axis::kTp, {0, 3}}, {Axis::kPp, {0, 4}}};
      for (int i = 0; i < 40; ++i) {
        Event& event = trace.events.emplace_back(event_as_written(random, static_cast<uint32_t>(trace.names.size())));
        if (random() % 2 == 0) continue;
        const double special[] = {0, 131072, -0.5, 1e300, 1e-7, std::numeric_limits<double>::infinity()};
        std::vector<double>& array = trace.arrays.emplace_back();
        for (auto left = random() % 4; left > 0; --left) array.push_back(special[random() % std::size(special)]);
        event.array = static_cast<uint32_t>(trace.arrays.size());
      }
      traces.push_back(std::move(trace));
    }
    for (const TraceClock clock : {TraceClock::kVirtual, TraceClock::kWall}) {
      write_chrome_trace(path, traces, {.clock = clock});
      const TraceFile fast = read_chrome_trace(path), slow = read_chrome_trace_slowly(path);
      ASSERT_EQ(fast.ranks, slow.ranks) << "round " << round;
      ASSERT_EQ(fast.ranks[1].arrays, traces[1].arrays);
      EXPECT_EQ(fast.clock, slow.clock);
      EXPECT_EQ(fast.world_size, slow.world_size);
      EXPECT_EQ(read_trace_prefix(path).broken, "");
    }
  }
}

// What a reader makes of one line; nothing when it refuses.
std::optional<std::vector<RankTrace>> read_line(const std::string& line, bool fast) {
  ChromeEvents events;
  events.section(
      "ranklab",
      nlohmann::json::parse(
          R"({"clock":"virtual","ranks":[{"rank":1,"label":"","dropped":0,"names":["recv"],"groups":[]}]})"));
  if (fast) {
    const bool taken = add_chrome_line(line, events);
    std::vector<RankTrace> ranks = events.take().ranks;
    if (taken) return ranks;
    EXPECT_TRUE(ranks[0].events.empty()) << line;
    return std::nullopt;
  }
  try {
    events.event(nlohmann::json::parse(line));
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return events.take().ranks;
}

// Lines that mean the same in other words, or nothing: either both readers agree, or the fast one declines.
TEST(ChromeLines, EveryChangeOfALineIsReadAlikeOrLeftAlone) {
  const std::string letters = "0123456789.-+eE\"\\,:{}[] aftX\x01\x80";
  for (const std::string line :
       {R"({"ph":"X","pid":1,"tid":3000,"ts":29.621,"dur":2.04,"name":"recv","cat":"collective","args":{"verb":"recv",)"
        R"("axis":"pp","dtype":"fp32","step":5,"peer":0,"seq":12,"posted_ns":-3,"wall_end_ns":9,"value":0.5}})",
        R"({"ph":"C","pid":1,"tid":0,"ts":-7,"name":"memory","args":{"value":64.25},"ranklab":{"step":2}})",
        R"({"ph":"i","pid":1,"tid":0,"ts":0.001,"s":"p","name":"recv","args":{"step":2}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":2,"name":"a2a","cat":"collective","args":{"verb":"all_to_all",)"
        R"("axis":"ep","dtype":"bf16","purpose":"dispatch","seq":3,"array":[1024,0,7.5,-2]}})",
        R"({"ph":"i","pid":1,"tid":0,"ts":1,"s":"p","name":"expert load","args":{"tag":1,"value":3,"array":[]}})",
        R"({"ph":"C","pid":1,"tid":0,"ts":1,"name":"c","args":{"value":1},"ranklab":{"step":2,"array":[10,1e30]}})"}) {
    const auto whole = read_line(line, true);
    ASSERT_TRUE(whole) << line;
    EXPECT_EQ(whole, read_line(line, false));
    size_t taken = 0;
    for (size_t at = 0; at < line.size(); ++at) {
      for (const char c : letters) {
        std::string other = line, longer = line, shorter = line;
        other[at] = c;
        longer.insert(at, 1, c);
        shorter.erase(at, 1);
        for (const std::string& text : {other, longer, shorter}) {
          const auto fast = read_line(text, true);
          taken += fast ? 1 : 0;
          if (fast) {
            ASSERT_EQ(fast, read_line(text, false)) << text;
          }
        }
      }
    }
    EXPECT_GT(taken, 350U);  // most changes of digits are lines of ours
  }
}

// Keys out of place are left to the general reader, which knows what they mean there.
TEST(ChromeLines, KeysOutOfPlaceAreLeftAlone) {
  for (const std::string line :
       {R"({"ph":"C","pid":1,"tid":0,"ts":1,"name":"loss","args":{"value":1},"ranklab":{"verb":"send"}})",
        R"({"ph":"C","pid":1,"tid":0,"ts":1,"name":"loss","args":{"value":1},"ranklab":{"value":7}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":1,"name":"F","cat":"compute","args":{"microbatch":1,"step":5}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":1,"name":"F","cat":"compute","args":{"step":5,"step":6}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":1,"name":"F","cat":"compute","args":{"step":5,"verb":"send"}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":1,"name":"F","cat":"compute","args":{"array":[1],"step":5}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":1,"name":"F","cat":"compute","args":{"array":[1],"value":5}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":1,"name":"F","cat":"compute","args":{"array":[1],"array":[2]}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":1,"name":"F","cat":"compute","args":{"array":[1,]}})",
        R"({"ph":"C","pid":1,"tid":0,"ts":1,"name":"loss","args":{"value":1},"ranklab":{"purpose":"combine"}})",
        R"({"ph":"X","pid":9,"tid":0,"ts":1,"dur":1,"name":"F","cat":"compute","args":{}})",
        R"({"ph":"X","pid":1,"tid":0,"ts":1,"dur":1,"name":"F","cat":"other","args":{}})"})
    EXPECT_FALSE(read_line(line, true)) << line;
}

TEST(ChromeLines, OtherLayoutsAreReadGenerally) {
  const TemporaryPath path("lines_pretty.json");
  write_chrome_trace(path, sample_traces());
  const TraceFile whole = read_chrome_trace(path);
  path.write(nlohmann::json::parse(path.content()).dump(2));
  const TraceFile pretty = read_chrome_trace(path);
  EXPECT_EQ(pretty.ranks[0].events, whole.ranks[0].events);
  EXPECT_EQ(read_trace_prefix(path).broken, "");
}

TEST(ChromeLines, StrictReadingRefusesWhatThePrefixShows) {
  const TemporaryPath path("lines_cut.json");
  write_chrome_trace(path, sample_traces());
  const std::string text = path.content();
  for (const std::string& broken : {text.substr(0, text.size() - 3), text + "x", text.substr(0, text.size() / 2),
                                    std::string(text).replace(text.rfind(",\n"), 2, "\n"),
                                    std::string(text).replace(text.rfind("\n]}"), 1, ",\n")}) {
    path.write(broken);
    EXPECT_THROW(read_chrome_trace(path), Error);
    const TracePrefix prefix = read_trace_prefix(path);
    EXPECT_THAT(prefix.broken, HasSubstr("broken after "));
    EXPECT_THAT(prefix.broken, HasSubstr("at byte "));
    EXPECT_EQ(prefix.file.ranks.size(), 2U);
    EXPECT_GT(prefix.file.ranks[0].events.size(), 0U);
  }
}

TEST(TextLines, LinesOfAnyLength) {
  const TemporaryPath path("lines.txt");
  const std::string longest(3'000'000, 'x');
  path.write("one\n\n" + longest + "\nlast");
  TextLines lines(path);
  std::string_view line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(lines.ended());
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line.size(), longest.size());
  EXPECT_EQ(lines.line_begin(), 5);
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "last");
  EXPECT_FALSE(lines.ended());
  EXPECT_FALSE(lines.next(line));
  EXPECT_EQ(lines.damage(), "");
}

}  // namespace
}  // namespace ranklab
