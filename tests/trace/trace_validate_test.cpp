#include "core/trace/trace_validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/trace/chrome_writer.h"
#include "tests/trace/sample_trace.h"

namespace ranklab {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using trace_samples::TemporaryPath;

// Event numbers of a sample rank.
constexpr size_t kAllReduce = 1, kMessage = 2;

std::vector<std::string> problems_after(const std::function<void(std::vector<RankTrace>&)>& fault) {
  std::vector<RankTrace> traces = trace_samples::sample_traces();
  fault(traces);
  const TemporaryPath path("validate.json");
  write_chrome_trace(path, traces);
  return validate_trace_file(path);
}

std::vector<std::string> problems_of_text(const std::string& from, const std::string& to) {
  const TemporaryPath path("validate_text.json");
  write_chrome_trace(path, trace_samples::sample_traces());
  std::string text = path.content();
  const size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  path.write(text.replace(place, from.size(), to));
  return validate_trace_file(path);
}

TEST(TraceValidate, ASoundTraceHasNoProblems) {
  EXPECT_THAT(problems_after([](auto&) {}), IsEmpty());
}

TEST(TraceValidate, FindsACollectiveThatAMemberLacks) {
  const auto problems =
      problems_after([](auto& traces) { traces[1].events.erase(traces[1].events.begin() + kAllReduce); });
  EXPECT_THAT(problems, ElementsAre(HasSubstr("all_reduce on dp #0 is missing on rank 1")));
}

TEST(TraceValidate, ARankThatDroppedEventsOrIsElsewhereIsNotMissed) {
  EXPECT_THAT(problems_after([](auto& traces) {
                traces[1].events.erase(traces[1].events.begin() + kAllReduce);
                traces[1].dropped = 1;
              }),
              IsEmpty());
  EXPECT_THAT(problems_after([](auto& traces) { traces.pop_back(); }), IsEmpty());
}

TEST(TraceValidate, FindsMembersThatDisagree) {
  EXPECT_THAT(problems_after([](auto& traces) { traces[1].events[kAllReduce].virtual_end_ns += 1; }),
              ElementsAre(HasSubstr("all_reduce on dp #0 has different times on rank 1")));
  EXPECT_THAT(problems_after([](auto& traces) { traces[1].events[kAllReduce].verb = Verb::kBroadcast; }),
              ElementsAre(HasSubstr("is broadcast on rank 1")));
  EXPECT_THAT(problems_after([](auto& traces) { traces[1].events[kAllReduce].dtype = DType::kFloat64; }),
              ElementsAre(HasSubstr("has dtype fp64 on rank 1")));
  EXPECT_THAT(problems_after([](auto& traces) { traces[1].events[kAllReduce].logical_bytes = 1; }),
              ElementsAre(HasSubstr("has a different number of bytes on rank 1")));
  EXPECT_THAT(problems_after([](auto& traces) { traces[1].events[kAllReduce].sequence = 7; }),
              ElementsAre(HasSubstr("#0 is missing on rank 1"), HasSubstr("#7 is missing on rank 0")));
}

TEST(TraceValidate, FindsPartsOfAnAllToAllThatCannotBe) {
  const auto with_parts = [](const std::vector<double>& parts, Purpose purpose = Purpose::kDispatch) {
    return problems_after([&](auto& traces) {
      for (RankTrace& trace : traces) {
        trace.events[kAllReduce].verb = Verb::kAllToAll;
        trace.events[kAllReduce].purpose = Purpose::kDispatch;
      }
      traces[1].events[kAllReduce].purpose = purpose;
      traces[1].arrays = {parts};
      traces[1].events[kAllReduce].array = 1;
    });
  };
  EXPECT_THAT(with_parts({512, 0}), IsEmpty());
  EXPECT_THAT(with_parts({512}), ElementsAre(HasSubstr("all_to_all on dp #0 has 1 parts on rank 1, want 2")));
  EXPECT_THAT(with_parts({512, -8}), ElementsAre(HasSubstr("has a part below 0 on rank 1")));
  EXPECT_THAT(with_parts({512, 0}, Purpose::kCombine), ElementsAre(HasSubstr("is for combine on rank 1")));
}

TEST(TraceValidate, FindsAMessageWithOneEnd) {
  EXPECT_THAT(problems_after([](auto& traces) { traces[1].events.erase(traces[1].events.begin() + kMessage); }),
              ElementsAre(HasSubstr("message: rank 0, send on pp #0 is missing on rank 1")));
}

TEST(TraceValidate, FindsTimesThatRunBackwards) {
  EXPECT_THAT(problems_after([](auto& traces) {
                for (RankTrace& trace : traces) trace.events[kAllReduce].virtual_matched_ns = 1499;
              }),
              Contains(HasSubstr("matched is before posted")));
  EXPECT_THAT(problems_after([](auto& traces) { traces[0].events[0].wall_end_ns = -1; }),
              ElementsAre(HasSubstr("ends before it begins (wall)")));
  EXPECT_THAT(problems_after([](auto& traces) { traces[0].events[0].virtual_end_ns = -5; }),
              Contains(HasSubstr("negative")));
  EXPECT_THAT(problems_after([](auto& traces) { traces[0].events[0].virtual_begin_ns = -5; }),
              Contains(HasSubstr("begins before the virtual clock")));
  EXPECT_THAT(problems_after([](auto& traces) {
                traces[0].events[0].virtual_end_ns = traces[0].events[0].virtual_begin_ns + (int64_t{1} << 52);
              }),
              Contains(HasSubstr("lasts 52 days or more")));
  EXPECT_THAT(problems_after([](auto& traces) {
                Event late = traces[0].events[4];
                late.virtual_begin_ns = late.virtual_end_ns = 10;
                traces[0].events.push_back(late);
              }),
              ElementsAre(HasSubstr("counter 'loss/value' of rank 0 runs backwards")));
}

TEST(TraceValidate, FindsCallsOfAGroupThatOverlapOrShareANumber) {
  EXPECT_THAT(problems_after([](auto& traces) {
                for (RankTrace& trace : traces) {
                  Event next = trace.events[kAllReduce];
                  next.sequence = 1;
                  next.virtual_begin_ns -= 10;
                  next.virtual_posted_ns = next.virtual_matched_ns = next.virtual_begin_ns;
                  trace.events.push_back(next);
                }
              }),
              ElementsAre(HasSubstr("begins before the call before it ended"), HasSubstr("rank 1")));
  EXPECT_THAT(problems_after([](auto& traces) { traces[0].events.push_back(traces[0].events[kAllReduce]); }),
              Contains(HasSubstr("has the number of another call")));
}

TEST(TraceValidate, FindsSlicesThatCross) {
  EXPECT_THAT(problems_of_text("\"tid\":5000,\"ts\":1.5", "\"tid\":1000,\"ts\":1.4"),
              Contains(HasSubstr("nesting: rank 0, track 1000")));
}

TEST(TraceValidate, FindsArrowsWithoutTwoEnds) {
  EXPECT_THAT(problems_of_text("\"ph\":\"f\"", "\"ph\":\"s\""), ElementsAre(HasSubstr("2 starts and 0 ends")));
  EXPECT_THAT(problems_of_text("\"ts\":2.699", "\"ts\":2.5"), ElementsAre(HasSubstr("ends before it starts")));
}

TEST(TraceValidate, FindsSchemaFaults) {
  EXPECT_THAT(problems_of_text("\"schemaVersion\":1", "\"schemaVersion\":2"),
              ElementsAre(HasSubstr("schemaVersion is 2")));
  EXPECT_THAT(problems_of_text("\"distributedInfo\"", "\"other\""), ElementsAre(HasSubstr("'distributedInfo'")));
  EXPECT_THAT(problems_of_text("\"ph\":\"X\"", "\"ph\":\"Q\""), ElementsAre(HasSubstr("unknown phase 'Q'")));
  EXPECT_THAT(problems_of_text("\"ph\":\"X\",\"pid\":1", "\"ph\":\"X\",\"pid\":9"),
              ElementsAre(HasSubstr("belongs to no rank: pid 9")));
  EXPECT_THAT(problems_of_text("\"ts\":0,", "\"at\":0,"), ElementsAre(HasSubstr("has no time")));
  EXPECT_THAT(problems_of_text("\"cat\":\"compute\"", "\"cat\":\"magic\""), ElementsAre(HasSubstr("category")));
  EXPECT_THAT(problems_of_text("process_name", "process_nom"), ElementsAre(HasSubstr("rank 0 has no process_name")));
}

// Not a problem for each of its events.
TEST(TraceValidate, SaysOnceThatAFileIsOfAnotherProgram) {
  const TemporaryPath path("profile.json");
  path.write(
      R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "pid": 4711, "tid": 1, "ts": 0, "dur": 1, "name": "aten::mm"},
                 {"ph": "X", "pid": 4711, "tid": 1, "ts": 1, "dur": 1, "name": "aten::mm"}]})");
  EXPECT_THAT(validate_trace_file(path), ElementsAre(HasSubstr("a trace of another program")));
}

TEST(TraceValidate, LimitsWhatItSays) {
  const TemporaryPath path("many.json");
  std::vector<RankTrace> traces = trace_samples::sample_traces();
  for (int i = 0; i < 20; ++i) {
    traces[0].events.push_back(traces[0].events[0]);
    traces[0].events.back().wall_end_ns = -1;
  }
  write_chrome_trace(path, traces);
  EXPECT_THAT(validate_trace_file(path, 5),
              ElementsAre(::testing::_, ::testing::_, ::testing::_, ::testing::_, ::testing::_, "... and 15 more"));
  path.write("{\"traceEvents\": [");
  EXPECT_THROW(validate_trace_file(path), Error);
}

}  // namespace
}  // namespace ranklab
