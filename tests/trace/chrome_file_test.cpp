#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.h"
#include "core/trace/chrome_reader.h"
#include "core/trace/chrome_writer.h"
#include "core/trace/gz_file.h"
#include "core/trace/trace_validate.h"
#include "tests/trace/sample_trace.h"

namespace ranklab {
namespace {

using trace_samples::TemporaryPath;

// Every field set to something random, valid for its kind.
Event event_with_any_field(std::mt19937_64& random, uint32_t names) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  Event event;
  event.kind = static_cast<EventKind>(below(static_cast<int>(EventKind::kCount)));
  event.name = static_cast<uint32_t>(below(names));
  event.step = static_cast<int>(below(100)) - 1;
  event.microbatch = static_cast<int>(below(5)) - 1;
  event.virtual_begin_ns = below(int64_t{1} << 48);
  event.wall_begin_ns = below(int64_t{1} << 60);
  event.virtual_end_ns = event.virtual_begin_ns;
  event.wall_end_ns = event.wall_begin_ns;
  event.value = std::ldexp(static_cast<double>(below(int64_t{1} << 53)), -40);
  if (event.kind == EventKind::kCounter) return event;
  event.sequence = below(10) - 1;
  event.peer = static_cast<int>(below(4)) - 1;
  event.tag = static_cast<int>(below(3));
  event.logical_bytes = below(int64_t{1} << 40);
  if (event.kind == EventKind::kInstant) return event;
  event.axis = static_cast<Axis>(below(static_cast<int>(Axis::kCount)));
  event.verb = static_cast<Verb>(below(static_cast<int>(Verb::kCount)));
  event.dtype = static_cast<DType>(below(10));
  event.purpose = static_cast<Purpose>(below(static_cast<int>(Purpose::kCount)));
  event.types = TypeChange(static_cast<uint32_t>(below(TypeChange::kEnd)));
  event.virtual_end_ns += below(1 << 20);
  event.wall_end_ns += below(1 << 20);
  event.virtual_posted_ns = below(2) == 0 ? kNoTime : below(1 << 30);
  event.virtual_matched_ns = below(1 << 30);
  event.virtual_first_byte_ns = below(1 << 30);
  event.wall_matched_ns = below(1 << 30);
  event.virtual_exposed_ns = below(1 << 20);
  event.virtual_peer_wait_ns = below(1 << 20);
  event.algorithm_bytes = below(int64_t{1} << 40);
  event.wire_bytes = below(int64_t{1} << 40);
  return event;
}

std::vector<RankTrace> random_traces() {
  std::mt19937_64 random(11);
  std::vector<RankTrace> traces(3);
  for (size_t r = 0; r < traces.size(); ++r) {
    traces[r].global_rank = static_cast<int>(2 * r);
    traces[r].label = "dp" + std::to_string(r);
    traces[r].dropped = static_cast<int64_t>(r);
    traces[r].names = {"F", "memory/parameters", "loss", "a/value", "\"quoted\"\n\xE2\x86\x92", "never used"};
    traces[r].groups = {{Axis::kDp, {0, 2, 4}}, {Axis::kDpCp, {static_cast<int>(2 * r)}}};
    for (int i = 0; i < 300; ++i) {
      Event& event = traces[r].events.emplace_back(event_with_any_field(random, 5));
      if (random() % 3 != 0) continue;
      std::vector<double>& array = traces[r].arrays.emplace_back(random() % 4);
      for (double& number : array) number = std::ldexp(static_cast<double>(random() >> 11), -20);
      event.array = static_cast<uint32_t>(traces[r].arrays.size());
    }
  }
  return traces;
}

TEST(ChromeFile, ReadsBackEveryField) {
  const std::vector<RankTrace> traces = random_traces();
  for (const char* name : {"round_trip.json", "round_trip.json.gz"}) {
    for (const TraceClock clock : {TraceClock::kVirtual, TraceClock::kWall}) {
      const TemporaryPath path(name);
      std::vector<RankTrace> written = traces;
      if (clock == TraceClock::kWall) {  // wall times within the exact range of microseconds with decimals
        for (RankTrace& trace : written) {
          for (Event& event : trace.events) std::swap(event.virtual_begin_ns, event.wall_begin_ns);
          for (Event& event : trace.events) std::swap(event.virtual_end_ns, event.wall_end_ns);
        }
      }
      write_chrome_trace(path, written,
                         {.clock = clock, .world_size = 6, .gpus_per_node = 3, .title = "a \"model\"; pp 2"});
      const TraceFile file = read_chrome_trace(path);
      EXPECT_EQ(file.clock, clock);
      EXPECT_EQ(file.world_size, 6);
      EXPECT_EQ(file.gpus_per_node, 3);
      EXPECT_EQ(file.title, "a \"model\"; pp 2");
      EXPECT_EQ(file.ranks, written) << name;
    }
  }
}

TEST(ChromeFile, TheTextOfASmallTrace) {
  const TemporaryPath path("golden.json");
  const std::vector<RankTrace> traces = trace_samples::sample_traces();
  write_chrome_trace(path, std::span(traces).first(1));
  EXPECT_EQ(
      path.content(),
      R"golden({"schemaVersion":1,"displayTimeUnit":"ns","distributedInfo":{"backend":"ranklab","rank":0,"world_size":1},
"ranklab":{"clock":"virtual","ranks":[
{"rank":0,"pid":1,"label":"dp0","dropped":0,"names":["F","all_reduce","send","memory/parameters","loss","validation"],"groups":[{"axis":"dp","ranks":[0,1]},{"axis":"pp","ranks":[0,1]}]}]},
"traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"rank 0 (dp0)"}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":1,"tid":0,"name":"thread_name","args":{"name":"phase"}},
{"ph":"M","pid":1,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":1,"tid":1000,"name":"thread_name","args":{"name":"compute"}},
{"ph":"M","pid":1,"tid":1000,"name":"thread_sort_index","args":{"sort_index":1000}},
{"ph":"M","pid":1,"tid":5000,"name":"thread_name","args":{"name":"dp"}},
{"ph":"M","pid":1,"tid":5000,"name":"thread_sort_index","args":{"sort_index":5000}},
{"ph":"M","pid":1,"tid":6000,"name":"thread_name","args":{"name":"pp"}},
{"ph":"M","pid":1,"tid":6000,"name":"thread_sort_index","args":{"sort_index":6000}},
{"ph":"X","pid":1,"tid":1000,"ts":0,"dur":1.5,"name":"F","cat":"compute","args":{"step":3,"wall_end_ns":15000}},
{"ph":"X","pid":1,"tid":5000,"ts":1.5,"dur":1.001,"name":"all_reduce","cat":"collective","args":{"verb":"all_reduce","axis":"dp","dtype":"fp32","step":3,"seq":0,"posted_ns":1500,"matched_ns":1500,"first_byte_ns":1501,"exposed_ns":1001,"logical_bytes":4096,"algorithm_bytes":4096,"wire_bytes":2048,"wall_begin_ns":15000,"wall_end_ns":25010}},
{"ph":"X","pid":1,"tid":6000,"ts":2.6,"dur":0.1,"name":"send","cat":"collective","args":{"verb":"send","axis":"pp","dtype":"fp32","step":3,"peer":1,"seq":0,"posted_ns":2600,"matched_ns":2600,"first_byte_ns":2601,"logical_bytes":4096,"algorithm_bytes":4096,"wire_bytes":2048,"wall_begin_ns":26000,"wall_end_ns":27000}},
{"ph":"C","pid":1,"tid":0,"ts":2.7,"name":"memory","args":{"parameters":1024},"ranklab":{"step":3}},
{"ph":"C","pid":1,"tid":0,"ts":2.7,"name":"loss","args":{"value":5.5},"ranklab":{"step":3}},
{"ph":"i","pid":1,"tid":0,"ts":2.8,"s":"p","name":"validation","args":{"step":3}}
]}
)golden");
  ;
}

TEST(ChromeFile, AMessageIsAnArrowFromSenderToReceiver) {
  const TemporaryPath path("arrow.json");
  write_chrome_trace(path, trace_samples::sample_traces());
  const auto root = nlohmann::json::parse(path.content());
  std::vector<std::string> arrows;
  for (const auto& event : root["traceEvents"]) {
    if (event["ph"] != "s" && event["ph"] != "f") continue;
    arrows.push_back(event["ph"].get<std::string>() + " " + event["id"].dump() + " process " + event["pid"].dump() +
                     " at " + event["ts"].dump());
  }
  EXPECT_EQ(arrows, (std::vector<std::string>{"s 1 process 1 at 2.6", "f 1 process 2 at 2.699"}));
}

TEST(ChromeFile, LossesThatAreNoNumbersSurvive) {
  RankTrace trace;
  trace.names = {"loss"};
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Event event;
    event.kind = EventKind::kCounter;
    event.value = value;
    trace.events.push_back(event);
  }
  const TemporaryPath path("nan.json");
  write_chrome_trace(path, std::span(&trace, 1));
  const TraceFile file = read_chrome_trace(path);
  EXPECT_TRUE(std::isnan(file.ranks[0].events[0].value));
  EXPECT_TRUE(std::isinf(file.ranks[0].events[1].value));
}

std::string error_of(const std::string& path, ErrorKind kind = ErrorKind::kBadFile) {
  try {
    read_chrome_trace(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "";
}

// The traces, cut into pieces of so many events a rank.
std::vector<std::vector<RankTrace>> pieces_of(const std::vector<RankTrace>& traces, size_t events) {
  size_t longest = 0;
  for (const RankTrace& trace : traces) longest = std::max(longest, trace.events.size());
  std::vector<std::vector<RankTrace>> pieces;
  for (size_t at = 0; at < longest; at += events) {
    for (const RankTrace& whole : traces) {
      RankTrace piece = whole;
      piece.dropped = at == 0 ? whole.dropped : 0;
      piece.events.clear();
      for (size_t e = at; e < std::min(at + events, whole.events.size()); ++e) piece.events.push_back(whole.events[e]);
      if (&whole == &traces.front()) pieces.emplace_back();
      pieces.back().push_back(std::move(piece));
    }
  }
  return pieces;
}

// `arrays` are numbered in the order of their events.
TEST(ChromeFile, ATraceThatGrowsIsReadAsOneThatIsWrittenAtOnce) {
  const std::vector<RankTrace> traces = random_traces();
  const TemporaryPath path("grown.json.gz");
  ChromeTraceWriter writer(path, {.world_size = 6, .gpus_per_node = 3});
  for (std::vector<RankTrace>& piece : pieces_of(traces, 17)) {
    for (RankTrace& trace : piece) ++trace.dropped;
    writer.add(piece);
    writer.flush();
  }
  EXPECT_FALSE(std::filesystem::exists(path.str())) << "before its end";
  writer.commit();
  TraceFile file = read_chrome_trace(path);
  for (size_t r = 0; r < traces.size(); ++r) {
    EXPECT_EQ(file.ranks[r].dropped, traces[r].dropped + 18) << "300 events, 17 at a time";
    file.ranks[r].dropped = traces[r].dropped;
  }
  EXPECT_EQ(file.ranks, traces);
  EXPECT_EQ(file.world_size, 6);
}

// A name that first appears later need not be known at the beginning.
TEST(ChromeFile, NamesMayComeUpLater) {
  RankTrace first, second;
  first.names = {"F"};
  first.events.emplace_back();
  second.names = {"F", "B"};
  second.events.emplace_back().name = 1;
  const TemporaryPath path("names.json");
  ChromeTraceWriter writer(path);
  writer.add(std::span(&first, 1));
  writer.add(std::span(&second, 1));
  writer.commit();
  const RankTrace read = read_chrome_trace(path).ranks.at(0);
  EXPECT_EQ(read.names, second.names);
  ASSERT_EQ(read.events.size(), 2u);
  EXPECT_EQ(read.events[1].name, 1u);
}

TEST(ChromeFile, AnArrowMayLeadFromOnePieceToAnother) {
  const std::vector<RankTrace> traces = trace_samples::sample_traces();
  const TemporaryPath path("late_arrow.json");
  ChromeTraceWriter writer(path);
  for (const std::vector<RankTrace>& piece : pieces_of(traces, 3)) {
    std::vector<RankTrace> one = piece, other = piece;
    one[1].events.clear();  // rank 1 is a piece behind
    other[0].events.clear();
    writer.add(one);
    writer.add(other);
  }
  writer.commit();
  EXPECT_EQ(validate_trace_file(path), std::vector<std::string>{});
  EXPECT_EQ(read_chrome_trace(path).ranks, traces);
  std::vector<std::string> arrows;
  const auto root = nlohmann::json::parse(path.content());
  for (const auto& event : root["traceEvents"])
    if (event["ph"] == "s" || event["ph"] == "f") arrows.push_back(event["ph"].get<std::string>() + event["ts"].dump());
  EXPECT_EQ(arrows, (std::vector<std::string>{"s2.6", "f2.699"}));
}

// The file of a process that was killed.
TEST(ChromeFile, AFileThatIsStillWrittenIsReadableUpToItsLastPiece) {
  const std::vector<RankTrace> traces = random_traces();
  const TemporaryPath path("killed.json.gz"), copy("killed_copy.json.gz");
  ChromeTraceWriter writer(path);
  size_t events = 0;
  for (const std::vector<RankTrace>& piece : pieces_of(traces, 100)) {
    writer.add(piece);
    writer.flush();
    events += 100;
    const std::string name = std::filesystem::path(path.str()).filename().string() + ".part";
    for (const auto& entry : std::filesystem::directory_iterator(::testing::TempDir()))
      if (entry.path().filename().string().starts_with(name))
        std::filesystem::copy_file(entry.path(), copy.str(), std::filesystem::copy_options::overwrite_existing);
    const TracePrefix read = read_trace_prefix(copy);
    EXPECT_THAT(read.broken, ::testing::HasSubstr("broken after "));
    ASSERT_EQ(read.file.ranks.size(), traces.size());
    for (const RankTrace& rank : read.file.ranks) EXPECT_EQ(rank.events.size(), events);
    EXPECT_NE(error_of(copy), "") << "it is no whole trace";
  }
}

TEST(ChromeFile, ACutFileIsRefusedAtEveryLength) {
  const TemporaryPath whole("whole.json"), cut("cut.json"), packed("whole.json.gz"), cut_packed("cut.json.gz");
  write_chrome_trace(whole, trace_samples::sample_traces());
  write_chrome_trace(packed, trace_samples::sample_traces());
  const std::string text = whole.content(), zipped = packed.content();
  for (size_t length = 1; length + 2 < text.size(); length += 7) {
    cut.write(text.substr(0, length));
    ASSERT_NE(error_of(cut), "") << length;
  }
  for (size_t length = 1; length + 1 < zipped.size(); length += 3) {
    cut_packed.write(zipped.substr(0, length));
    ASSERT_NE(error_of(cut_packed), "") << length;
  }
}

// Whatever bytes change: the file is read, or refused with kBadFile; nothing else happens.
TEST(ChromeFile, DamagedFilesNeverCrash) {
  const TemporaryPath whole("fuzz_whole.json"), damaged("fuzz.json");
  write_chrome_trace(whole, trace_samples::sample_traces());
  const std::string text = whole.content();
  const std::string bytes = "\"{}[]:,0-e.n\\x\x80";
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string changed = text;
    for (int i = 0; i < 1 + round % 3; ++i) {
      const size_t place = random() % changed.size();
      switch (random() % 3) {
        case 0:
          changed[place] = bytes[random() % bytes.size()];
          break;
        case 1:
          changed.erase(place, 1 + random() % 20);
          break;
        default:
          changed.insert(place, changed.substr(random() % changed.size(), 1 + random() % 20));
      }
    }
    damaged.write(changed);
    try {
      read_chrome_trace(damaged);
      validate_trace_file(damaged);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kBadFile) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
}

TEST(ChromeFile, OtherFilesAreRefusedWithTheReason) {
  const TemporaryPath path("other.json");
  EXPECT_THAT(error_of("/nowhere/trace.json", ErrorKind::kIo), ::testing::HasSubstr("No such file"));
  path.write("[1, 2]");
  EXPECT_THAT(error_of(path), ::testing::HasSubstr("not an object"));
  path.write(R"({"traceEvents": []})");
  EXPECT_THAT(error_of(path), ::testing::HasSubstr("another program"));
  path.write(R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "pid": 4711, "name": "aten::mm"}]})");
  EXPECT_THAT(error_of(path),
              ::testing::AllOf(::testing::HasSubstr("another program"), ::testing::HasSubstr("other.json]")));
  path.write(R"({"schemaVersion": 99, "ranklab": {"clock": "virtual", "ranks": []}, "traceEvents": []})");
  EXPECT_THAT(error_of(path), ::testing::HasSubstr("schemaVersion 99"));
  path.write(
      R"({"schemaVersion": 1, "ranklab": {"clock": "virtual", "ranks": []}, "traceEvents": [{"ph": "X", "pid": 0}]})");
  EXPECT_THAT(error_of(path), ::testing::HasSubstr("unknown rank"));
  path.write(R"({"schemaVersion": 1, "ranklab": 5, "traceEvents": []})");
  EXPECT_NE(error_of(path), "");
}

TEST(ChromeFile, NumbersOutsideTheirTypeAreNamedAndRefused) {
  const TemporaryPath path("numbers.json");
  for (const std::string number : {"1e30", "4294967296", "1.5", "\"7\"", "-9223372036854775809"}) {
    path.write(R"({"schemaVersion": 1, "ranklab": {"clock": "virtual", "ranks": [{"rank": )" + number +
               R"(, "label": "a", "dropped": 0, "groups": [], "names": []}]}, "traceEvents": []})");
    EXPECT_THAT(error_of(path), ::testing::HasSubstr("\"rank\" is not a whole number in range")) << number;
  }
}

TEST(ChromeFile, AFileThatUnpacksWithoutEndIsRefusedEarly) {
  const TemporaryPath path("bomb.json.gz");
  GzWriter bomb(path);
  bomb.write(R"({"displayTimeUnit": ")");
  const std::string piece(1 << 20, 'a');
  for (int i = 0; i < 100; ++i) bomb.write(piece);
  bomb.write("\"}");
  bomb.commit();
  EXPECT_THAT(error_of(path), ::testing::HasSubstr("unpacks to more than a trace can"));
}

TEST(ChromeFile, AppearsWholeOrNotAtAll) {
  RankTrace broken;
  broken.events.emplace_back();  // a name index past the table: the writer throws halfway
  const TemporaryPath path("halfway.json");
  path.write("the file of before");
  EXPECT_THROW(write_chrome_trace(path, std::span(&broken, 1)), Error);
  EXPECT_EQ(path.content(), "the file of before");
  const std::string name = std::filesystem::path(path.str()).filename().string();
  for (const auto& entry : std::filesystem::directory_iterator(::testing::TempDir()))
    EXPECT_FALSE(entry.path().filename().string().starts_with(name + ".")) << "left behind: " << entry.path();
  EXPECT_THROW(write_chrome_trace("/nowhere/trace.json", trace_samples::sample_traces()), Error);
}

}  // namespace
}  // namespace ranklab
