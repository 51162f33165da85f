// A command line run through the fork server's client must be indistinguishable from running the program.
#include "tests/fork_server/fork_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <fstream>
#include <string>

#include "tests/cli/run_program.h"
#include "tests/eventually.h"
#include "tests/fork_server/request.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

struct Line {
  std::string shell;   // P stands for the program
  bool forked = true;  // otherwise the client becomes the program itself
};
void PrintTo(const Line& line, std::ostream* out) { *out << line.shell; }

// Once it waits, as it tells. The shell's own word on it is left out: whether it says "Killed" depends on when it
// learns of the end.
Line ended_by(const std::string& signal) {
  return {
      "rm -f $FACT_PARENT; env --default-signal=INT P wait & until [ -s $FACT_PARENT ]; do sleep 0.01; "
      "done; exec 2>/dev/null; kill -" +
      signal + " $!; wait $!; echo code $?"};
}

// Whether this process, and with it the server, may run on processor 0 only: on a machine with one, or under taskset.
bool has_only_processor_0() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) == 1 && CPU_ISSET(0, &allowed);
}

const std::string kTold = temporary_path("told");

class ServedProgram : public testing::TestWithParam<Line> {
 protected:
  static Outcome run(std::string shell, const std::string& program) {
    for (size_t at = 0; (at = shell.find("P ", at)) != std::string::npos; at += program.size())
      shell.replace(at, 1, "'" + program + "'");
    return run_command("exec 2>&1; " + shell);
  }
  // Process and parent of the last one run with FACT_PARENT.
  static std::pair<pid_t, pid_t> told() {
    std::pair<pid_t, pid_t> out;
    std::ifstream(kTold) >> out.first >> out.second;
    return out;
  }
  static std::string command_line(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const fork_server::ForkServer server_{RANKLAB_FACTS, ""};
};

TEST_P(ServedProgram, IsGivenAndGivesTheSame) {
  ::setenv("FACT_PARENT", kTold.c_str(), 1);
  const Outcome want = run(GetParam().shell, RANKLAB_FACTS);
  EXPECT_FALSE(want.output.empty());
  const Outcome got = run(GetParam().shell, RANKLAB_FORK_CLIENT);
  EXPECT_EQ(got.output, want.output);
  EXPECT_EQ(got.exit_code, want.exit_code);
  const bool forked = command_line(told().second).starts_with(RANKLAB_FACTS);
  EXPECT_EQ(forked, GetParam().forked) << "its parent: " << command_line(told().second);
  ::unsetenv("FACT_PARENT");
}

INSTANTIATE_TEST_SUITE_P(All, ServedProgram,
                         testing::Values(Line{"P a 'b c' '' exit=7"}, Line{"FACT=1 P x"}, Line{"cd / && P x"},
                                         Line{"mkdir -p gone && cd gone && rmdir ../gone && P x"},
                                         Line{"printf hi | P read=0"}, Line{"P x read=5 5< /proc/version"},
                                         Line{"P x <&-"}, Line{"P x >/dev/null; echo code $?"}, Line{"umask 077; P x"},
                                         Line{"trap '' USR1 XFSZ; P x"}, Line{"(P kill=9); echo code $?"},
                                         Line{"(P kill=15); echo code $?"}, ended_by("INT"), ended_by("KILL"),
                                         Line{"P x | cat"}, Line{"script -qec \"P x \" /dev/null | tr -d '\\r'"},
                                         Line{"ulimit -n 300; P x", false}, Line{"OMP_NUM_THREADS=3 P x", false},
                                         Line{"taskset -c 0 P x", has_only_processor_0()}));

class ForkServer : public ServedProgram {};

TEST_F(ForkServer, EndsACopyWhoseClientWasKilled) {
  std::filesystem::remove(kTold);
  const Outcome killed = run("FACT_PARENT=" + kTold + " P wait & while [ ! -s " + kTold +
                                 " ]; do sleep 0.01; done; kill -9 $!; wait $!; echo code $?",
                             RANKLAB_FORK_CLIENT);
  EXPECT_THAT(killed.output, HasSubstr("code 137"));
  const pid_t copy = told().first;
  ASSERT_GT(copy, 1);
  EXPECT_TRUE(eventually([&] { return ::kill(copy, 0) != 0; })) << "it lives on";
}

TEST_F(ForkServer, ServesSeveralAtOnce) {
  std::filesystem::remove(kTold);
  const Outcome run_beside = run("FACT_PARENT=" + kTold + " P wait & until [ -s " + kTold +
                                     " ]; do sleep 0.01; done; P exit=3; echo code $?; "
                                     "kill $!; wait $!; echo then $?",
                                 RANKLAB_FORK_CLIENT);
  EXPECT_THAT(run_beside.output, testing::AllOf(HasSubstr("code 3"), HasSubstr("then 143")));
}

TEST(ForkServerClient, SaysWhatItLacks) {
  const Outcome none = run_command(RANKLAB_FORK_CLIENT " x 2>&1");
  EXPECT_EQ(none.exit_code, 125);
  EXPECT_THAT(none.output, HasSubstr("error: no fork server is named in RANKLAB_FORK_SERVER; got \"\"; do: "));
  const Outcome gone = run_command("RANKLAB_FORK_SERVER=nobody:/bin/true " RANKLAB_FORK_CLIENT " x 2>&1");
  EXPECT_EQ(gone.exit_code, 125);
  EXPECT_THAT(gone.output, HasSubstr("error: no fork server answers; got nobody:/bin/true: Connection refused; do: "));
}

TEST(ForkServerClient, SaysThatTheServerDidNotStart) {
  const fork_server::ForkServer server(RANKLAB_FACTS, "/no/such/library.so");
  const Outcome run = run_command(RANKLAB_FORK_CLIENT " x 2>&1");
  EXPECT_EQ(run.exit_code, 125);
  EXPECT_THAT(run.output, HasSubstr("error: "));
}

}  // namespace
}  // namespace ranklab
