// A learner's code may crash, loop, exit, throw or deadlock: each is explained in words, and nothing hangs. The time
// limits here are liveness limits of the check itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <unistd.h>

#include <array>

#include "core/base/error.h"
#include "core/base/text.h"
#include "lessons/compile.h"
#include "tests/lessons/exercise_file.h"

namespace ranklab::lesson {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

std::string ring_with(const std::string& body) {
  return "#include \"exercise.h\"\n#include <cstdlib>\n#include <stdexcept>\n#include <vector>\n"
         "using namespace ranklab::lesson;\n"
         "extern \"C\" void ring_all_reduce([[maybe_unused]] Comm& comm, [[maybe_unused]] std::span<double> data) {\n" +
         body + "\n}\n";
}

struct Fault {
  const char* name;
  const char* body;  // its first line is line 7 of the file
  std::vector<std::string> told;
};

constexpr const char* kDeadlock =
    "comm.send(data, (comm.rank() + 1) % comm.size());\ncomm.recv(data, (comm.rank() + 7) % comm.size());";

const Fault kFaults[] = {
    {"crash",
     "if (comm.rank() == 3) *static_cast<volatile int*>(nullptr) = 1;\ncomm.all_reduce(data);",
     {"crashed on rank 3 at exercise.cpp:7 with SIGSEGV"}},
    {"index",
     "data[data.size()] = 1;\ncomm.all_reduce(data);",
     {"at exercise.cpp:7 with SIGABRT", "index past the end"}},
    {"recursion", "ring_all_reduce(comm, data);\ndata[0] = 0;", {"no room on the stack", "calls itself without end"}},
    {"abort",
     "if (comm.rank() == 0) std::abort();\ncomm.all_reduce(data);",
     {"crashed on rank 0 at exercise.cpp:7 with SIGABRT"}},
    {"exit",
     "if (comm.rank() == 1) std::_Exit(3);\ncomm.all_reduce(data);",
     {"ended the whole process", "exit code 3"}},
    {"exception",
     "if (comm.rank() == 2) throw std::runtime_error(\"no idea\");\ncomm.all_reduce(data);",
     {"rank 2", "no idea"}},
    {"deadlock", kDeadlock, {"deadlock", "rank 0", "exercise.cpp:7"}},
    {"early_return", "if (comm.rank() == 5) return;\ncomm.all_reduce(data);", {"deadlock", "rank 5", "returned"}},
    {"sizes",
     "comm.send_recv(data.first(comm.rank() == 0 ? 3 : 4), (comm.rank() + 1) % 8, data.last(4), "
     "(comm.rank() + 7) % 8);",
     {"3", "4", "exercise.cpp:7"}},
    {"hang",
     "if (comm.rank() == 4) for (volatile bool forever = true; forever;) {}\ncomm.all_reduce(data);",
     {"rank 4", "hung"}},
    {"ticket", "comm.wait(3);", {"no such ticket"}},
    {"peer", "comm.send(data, 8);", {"8"}},
};

class Faults : public ::testing::TestWithParam<Fault> {};

TEST_P(Faults, AreToldInWords) {
  const Grade got = grade_text("1", ring_with(GetParam().body), milliseconds(10'000));
  EXPECT_TRUE(got.compiled) << got.compiler_messages;
  EXPECT_FALSE(got.passed());
  EXPECT_TRUE(got.rows.empty());
  const std::string told = got.problem + "\n" + join(got.details, "\n");
  for (const std::string& text : GetParam().told) EXPECT_THAT(told, HasSubstr(text));
}

INSTANTIATE_TEST_SUITE_P(All, Faults, ::testing::ValuesIn(kFaults),
                         [](const auto& test) { return std::string(test.param.name); });

// While the library is loaded, before there is any rank, or behind a noexcept: nobody can catch it.
TEST(Faults, AnExceptionThatNobodyCanCatchIsTold) {
  const std::string reduce = ring_with("comm.all_reduce(data);");
  const auto global = [&](const std::string& thrown) {
    return grade_text("1", reduce + "static const int kTable = [] { if (true) throw " + thrown + "; return 0; }();\n");
  };
  const Grade table = global("std::runtime_error(\"no table\")"), number = global("3");
  EXPECT_EQ(table.problem, "your code threw");
  EXPECT_THAT(table.details, testing::ElementsAre("no table", HasSubstr("the initial value of a global variable")));
  EXPECT_EQ(number.problem, "your code threw");
  EXPECT_THAT(number.details, testing::Contains("something that is not a std::exception"));
  const Grade rank = grade_text(
      "1", ring_with("[&]() noexcept { if (comm.rank() == 2) throw std::runtime_error(\"no way out\"); }();\n"
                     "comm.all_reduce(data);"));
  EXPECT_EQ(rank.problem, "rank 2: your code threw");
  EXPECT_THAT(rank.details, testing::Contains("no way out"));
}

// The buckets are gone before the ranks are: what was started must not write into them.
TEST(Faults, AnAllReduceThatIsNeverWaitedForIsNamed) {
  const auto wait_with = [](const std::string& line) {
    return grade_text("2", changed_solution("2", "comm.wait(bucket.ticket);", line));
  };
  const Grade never = wait_with("");
  EXPECT_THAT(never.problem, HasSubstr("a call was started and never waited for"));
  EXPECT_THAT(never.details, testing::Contains("ticket 0 of 4 started"));
  const Grade wrong = wait_with("comm.wait(bucket.ticket + 77);");
  EXPECT_THAT(wrong.problem, HasSubstr("there is no such ticket"));
  EXPECT_THAT(wrong.details, testing::Contains("wanted: 0 to 3"));
}

// Of the calls in which it is, none of the check's own.
TEST(Faults, AHungRankIsInTheLearnersFunction) {
  const Grade got = grade_text(
      "1", ring_with("if (comm.rank() == 4) for (volatile bool forever = true; forever;) {}\ncomm.all_reduce(data);"),
      milliseconds(4'000));
  EXPECT_THAT(join(got.details, "\n"),
              AllOf(HasSubstr("it is in ring_all_reduce"), testing::Not(HasSubstr("called by"))));
}

// Memory that is mapped counts, not only what is written, so it ends soon on machines of any size.
TEST(Faults, EndlessAllocationIsEndedBeforeTheMachineLacksMemory) {
  const Grade got = grade_text("1",
                               ring_with("std::vector<char*> all;\n"
                                         "for (;;) all.push_back(static_cast<char*>(::operator new(1 << 28)));"),
                               milliseconds(60'000));
  EXPECT_THAT(got.problem + join(got.details, " "), HasSubstr("more memory"));
}

// Each holds the end of a pipe that it got with all that was open here.
TEST(Faults, ProcessesThatItStartsEndWithIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  grade_text("0",
             "#include \"exercise.h\"\n#include <unistd.h>\n"
             "extern \"C\" void coord(int, const ranklab::lesson::MeshSize&, ranklab::lesson::Coordinates&) {\n"
             "  if (::fork() == 0) for (;;) ::pause();\n}\n",
             milliseconds(2'000));
  ::close(ends[1]);
  pollfd closed{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&closed, 1, 30'000), 1);
  ::close(ends[0]);
}

// No rank waits for it, so there is no world to notice.
TEST(Faults, AnEndlessLoopIsEnded) {
  const Grade got = grade_text("0",
                               "#include \"exercise.h\"\n"
                               "extern \"C\" void coord(int, const ranklab::lesson::MeshSize&, "
                               "ranklab::lesson::Coordinates&) { for (volatile bool forever = true; forever;) {} }\n",
                               milliseconds(1'000));
  EXPECT_THAT(got.problem, HasSubstr("did not come to an end within 1 s"));
}

// A line for each rank of the circle, and advice that the exercise can follow.
TEST(Faults, ADeadlockIsReadable) {
  const Grade got = grade_text("1", ring_with(kDeadlock));
  EXPECT_THAT(got.problem, HasSubstr("deadlock: each rank waits for the next one"));
  EXPECT_EQ(got.details.size(), 11u) << "8 ranks, the first again, wanted, do";
  for (const std::string& line : got.details) EXPECT_THAT(line, testing::Not(HasSubstr("world["))) << line;
  EXPECT_THAT(got.details.back(), HasSubstr("send_recv"));
}

TEST(Faults, ACompileErrorNamesFileAndLine) {
  const Grade got = grade_text("1", ring_with("int x = \"seven\";"));
  EXPECT_FALSE(got.compiled);
  EXPECT_FALSE(got.passed());
  EXPECT_THAT(got.compiler_messages, HasSubstr("exercise.cpp:7:"));
}

TEST(Faults, AnUndefinedFunctionIsACompileError) {
  const Grade got = grade_text("1", "void helper();\n" + ring_with("helper();"));
  EXPECT_FALSE(got.compiled);
  EXPECT_THAT(got.compiler_messages, HasSubstr("helper"));
}

TEST(Faults, AMissingFunctionIsNamed) {
  const Grade got = grade_text("1", "#include \"exercise.h\"\n");
  EXPECT_THAT(join(got.details, "\n"), AllOf(HasSubstr("ring_all_reduce"), HasSubstr("lesson reset")));
}

TEST(Faults, AnotherSignatureDoesNotCompile) {
  const Grade got = grade_text("0", "#include \"exercise.h\"\nextern \"C\" int coord(int rank) { return rank; }\n");
  EXPECT_FALSE(got.compiled);
}

TEST(Faults, WithoutACompilerThatIsSaid) {
  const char* before = std::getenv("CXX");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("CXX", "no-such-compiler", 1);
  const Grade got = grade_text("0", "#include \"exercise.h\"\n");
  EXPECT_FALSE(got.compiled);
  EXPECT_THAT(got.compiler_messages, HasSubstr("no-such-compiler"));
  before == nullptr ? ::unsetenv("CXX") : ::setenv("CXX", kept.c_str(), 1);
}

TEST(Faults, NothingIsLeftInTheTemporaryFolder) {
  std::filesystem::path folder;
  {
    const ExerciseFile file(ring_with(""));
    const Compiled compiled = compile_exercise(file.path(), find_lesson("1").folder(), false);
    ASSERT_TRUE(compiled.ok) << compiled.messages;
    folder = compiled.shared_object.parent_path();
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(Faults, AFileThatIsNotThereIsAnError) {
  EXPECT_THROW(grade(find_lesson("0"), "/no/such/exercise.cpp", {}), Error);
}

}  // namespace
}  // namespace ranklab::lesson
