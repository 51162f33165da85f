// Whatever a viewer is given: whole, cut off, damaged, or from another program.
#include "viz/model/store/load_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "core/base/error.h"
#include "core/pipeline/csv.h"
#include "core/pipeline/schedules.h"
#include "core/trace/chrome_writer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/model/make_trace.h"
#include "viz/model/critical_path.h"
#include "viz/model/store/generated_trace.h"
#include "viz/model/store/schedule_store.h"
#include "viz/model/store/selection.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/comm_table.h"
#include "viz/model/tables/mismatch_view.h"
#include "viz/model/tables/traffic_matrix.h"
#include "viz/model/text_timeline.h"

namespace ranklab::viz {
namespace {

using ::testing::HasSubstr;

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string small_trace(const std::string& name) {
  std::string path = temporary_path(name) + ".json";
  const TraceStore store = samples::straggler_store();
  write_chrome_trace(path, store.traces());
  return path;
}

TEST(LoadTrace, WholeFileHasNoWarning) {
  const std::string path = small_trace("load_whole");
  const TraceStore store = load_trace(path);
  EXPECT_EQ(store.warning(), "");
  EXPECT_EQ(store.num_events(), 6U);
  EXPECT_EQ(store.source(), path);
  const BubbleReport report = find_bubbles(store, store.whole());
  EXPECT_EQ(report.ranks[1].time.bubble_ns, 40);
  std::filesystem::remove(path);
}

// One event of six, each way: the others' figures stay what they were without it.
TEST(LoadTrace, TimesThatNoEventHasCountAsNone) {
  const std::string path = small_trace("load_times"), text = content(path);
  const std::regex duration("\"dur\":[0-9.]+"), begin("\"ts\":[0-9.]+");
  const auto once = std::regex_constants::format_first_only;
  for (const std::string& damaged :
       {std::regex_replace(text, duration, "\"dur\":-5", once),
        std::regex_replace(text, duration, "\"dur\":9e12", once), std::regex_replace(text, begin, "\"ts\":-5", once)}) {
    write(path, damaged);
    const TraceStore store = load_trace(path);
    EXPECT_THAT(store.warning(), HasSubstr("the file is damaged: 1 event with an end before the beginning"));
    EXPECT_TRUE(store.partial());
    EXPECT_LE(store.whole().range.end_ns, 1000);
    for (const RankTrace& trace : store.traces())
      for (const Event& event : trace.events) EXPECT_GE(event.virtual_end_ns, event.virtual_begin_ns);
  }
  std::filesystem::remove(path);
}

// Cut at every byte: what is before the cut is shown, the warning says where it broke, and every table works on it.
TEST(LoadTrace, CutOffAtEveryByte) {
  const std::string whole_path = small_trace("load_cut");
  const std::string text = content(whole_path);
  const std::string path = temporary_path("load_cut_part");
  const TraceStore whole = load_trace(whole_path);
  const size_t first_event = text.find("\"traceEvents\":[") + 15;
  size_t most = 0;
  for (size_t cut = 0; cut < text.size(); ++cut) {
    write(path, text.substr(0, cut));
    if (cut < first_event) {  // in the header: nothing, or ranks without events
      try {
        const TraceStore store = load_trace(path);
        EXPECT_TRUE(store.empty()) << cut;
        EXPECT_THAT(store.warning(), HasSubstr("broken")) << cut;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kBadFile) << cut;
      }
      continue;
    }
    const TraceStore part = load_trace(path);
    const bool whole_but_for_the_end = text.find_first_not_of("]}\n", cut) == std::string::npos;
    if (cut + 1 < text.size()) {
      EXPECT_THAT(part.warning(), HasSubstr("broken after")) << cut;
    }
    EXPECT_GE(part.num_events(), most) << cut;
    most = part.num_events();
    if (whole_but_for_the_end) {
      EXPECT_GE(part.num_events(), whole.num_events() - 1);
    }
    for (size_t r = 0; r < part.traces().size(); ++r) {
      for (size_t e = 0; e < part.trace(r).events.size(); ++e) EXPECT_EQ(part.event({r, e}), whole.event({r, e}));
    }
    find_bubbles(part, part.whole());
    EXPECT_EQ(find_critical_path(part, part.whole()).length_ns(), part.range().length_ns());
    comm_calls(part, part.whole());
    mismatch_views(part);
    text_timeline(part);
  }
  EXPECT_EQ(most, whole.num_events());
  std::filesystem::remove(whole_path);
}

TEST(LoadTrace, ACutGzipFileShowsWhatCanBeUnpacked) {
  const std::string path = temporary_path("load_gz") + ".json.gz";
  const TraceFile file = generated_trace(50'000);
  write_chrome_trace(path, file.ranks);
  const std::string packed = content(path);
  write(path, packed.substr(0, packed.size() / 2));
  const TraceStore store = load_trace(path);
  EXPECT_GT(store.num_events(), 10'000U);
  EXPECT_LT(store.num_events(), 45'000U);
  EXPECT_THAT(store.warning(), HasSubstr("broken after"));
  EXPECT_THAT(store.warning(), HasSubstr("cannot read on"));
  std::filesystem::remove(path);
}

TEST(LoadTrace, DamageInTheMiddleKeepsWhatIsBefore) {
  const std::string path = small_trace("load_damage");
  const std::string text = content(path);
  const size_t third = text.find("\"name\":\"optimizer\"");
  struct Row {
    std::string from, to, warning;
  };
  for (const Row& row : {Row{"\"optimizer\"", "\"optim\x01zer\"", "not valid JSON"},
                         Row{"\"cat\":\"compute\"", "\"cat\":7", "cannot be used: type must be string"},
                         Row{"\"step\":0", "\"step\":99999999999", "not a whole number in range"}}) {
    std::string broken = text;
    broken.replace(broken.find(row.from, third - 20), row.from.size(), row.to);
    write(path, broken);
    const TraceStore store = load_trace(path);
    EXPECT_EQ(store.num_events(), 2U) << row.to;
    EXPECT_THAT(store.warning(), HasSubstr(row.warning));
  }
  std::string other = text;
  other.replace(other.find("\"schemaVersion\":1"), 17, "\"schemaVersion\":7");
  write(path, other);
  EXPECT_THAT(load_trace(path).warning(), HasSubstr("another version of the file format; got schemaVersion 7; want 1"));
  std::filesystem::remove(path);
}

TEST(LoadTrace, NothingToShowIsAnErrorThatSaysWhatWouldBe) {
  const std::string path = temporary_path("load_nothing");
  for (const char* text : {"", "{}", "[1,2]", "not json", "{\"traceEvents\":[]}", "\x1f\x8b broken"}) {
    write(path, text);
    try {
      load_trace(path);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile) << text;
      EXPECT_THAT(error.what(), HasSubstr("nothing in it can be shown")) << text;
    }
  }
  EXPECT_THROW(load_trace("/no/such/file"), Error);
}

TEST(LoadTrace, ScheduleFiles) {
  const std::string path = temporary_path("load_csv") + ".csv";
  const Schedule schedule = make_schedule("1f1b", {.num_ranks = 8, .num_microbatches = 32});
  write_schedule(schedule, path, ScheduleDialect::kTorch);
  const TraceStore store = load_trace(path);
  EXPECT_EQ(store.unit_ns(), kScheduleUnitNs);
  EXPECT_THAT(text_totals(store, store.whole()), HasSubstr("117 units"));
  std::filesystem::remove(path);
}

// As torch.profiler writes it, shortened.
std::string pytorch_file(int rank, int64_t base_ns) {
  const std::string group =
      R"("Process Group Name":"0","Process Group Description":"mesh_dp","Process Group Ranks":"[0, 1]")";
  return R"({"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":)" + std::to_string(rank) +
         R"(,"world_size":2},"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","pid":7,"tid":7,"ts":1000.5,"dur":200},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":1001,"dur":5,"args":{"External id":3}},
{"ph":"X","cat":"kernel","name":"ampere_bf16_gemm","pid":0,"tid":7,"ts":1010,"dur":50,"args":{"device":0}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_bf16_RING_LL","pid":0,"tid":9,"ts":1070,"dur":30,)" +
         R"("args":{"Collective name":"allreduce","In msg nelems":1024,"Out msg nelems":1024,"dtype":"BFloat16",)" +
         group +
         R"(}},
{"ph":"f","id":1,"pid":0,"tid":9,"ts":1070,"cat":"ac2g","name":"ac2g","bp":"e"}
],"baseTimeNanoseconds":)" +
         std::to_string(base_ns) + "}\n";
}

TEST(LoadTrace, PytorchProfilerOneFileARank) {
  std::vector<std::string> paths;
  for (const int rank : {0, 1}) {
    paths.push_back(temporary_path("pytorch" + std::to_string(rank)));
    write(paths.back(), pytorch_file(rank, 1'700'000'000'000'000'000 + 2000 * rank));
  }
  const TraceStore store = load_traces(paths);
  ASSERT_EQ(store.ranks().size(), 2U);
  EXPECT_EQ(store.clock(), TraceClock::kWall);
  EXPECT_EQ(store.range().begin_ns, 0);
  ASSERT_EQ(store.steps().size(), 1U);
  EXPECT_EQ(store.steps()[0].step, 4);
  const std::vector<CommCall> calls = comm_calls(store, store.whole());
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].verb, Verb::kAllReduce);
  EXPECT_EQ(calls[0].axis, Axis::kDp);
  EXPECT_EQ(calls[0].dtype, DType::kBFloat16);
  EXPECT_EQ(calls[0].logical_bytes, 2048);
  EXPECT_EQ(calls[0].sides.size(), 2U);
  EXPECT_EQ(calls[0].skew_ns, 2000);
  const EventRef gemm = search_events(store, "gemm").at(0);
  EXPECT_EQ(store.begin_ns(gemm), 9500);
  EXPECT_EQ(store.event(gemm).step, 4);
  EXPECT_TRUE(search_events(store, "aten").empty());  // kernels are the work where there are any
  EXPECT_EQ(traffic_matrix(store, store.whole()).at(0, 1).of(TrafficLayer::kAlgorithm), 2048);
  const std::vector<std::string> twice = {paths[0], paths[0]};
  EXPECT_THROW(load_traces(twice), Error);
}

TEST(LoadTrace, PytorchFileCutOff) {
  const std::string path = temporary_path("pytorch_cut");
  const std::string text = pytorch_file(0, 0);
  write(path, text.substr(0, text.find("ncclDev")));
  const TraceStore store = load_trace(path);
  EXPECT_EQ(store.num_events(), 2U);
  EXPECT_THAT(store.warning(), HasSubstr("broken"));
}

TEST(GeneratedTrace, HasTheSizeAndTheShape) {
  const TraceStore store(generated_trace(100'000));
  EXPECT_GE(store.num_events(), 100'000U);
  EXPECT_LT(store.num_events() - 100'000U, store.num_events() / store.steps().size());  // in whole steps
  EXPECT_EQ(store.ranks().size(), 8U);
  const BubbleReport report = find_bubbles(store, *store.step_window(5));
  EXPECT_EQ(report.ranks[0].time.busy_ns, 96 * kScheduleUnitNs);
  EXPECT_EQ(find_critical_path(store, store.whole()).length_ns(), store.range().length_ns());
}

}  // namespace
}  // namespace ranklab::viz
