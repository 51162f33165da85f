// `ranklab debug` as a user types it: by a script on stdin, and with Ctrl-C.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/cli/run_program.h"
#include "tests/eventually.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::string kLayout =
    " --pp 2 --tp 2 --dp 2 --mock-data --gemm mkl --num-microbatches 4 --eval-interval 0 --sample-tokens 0";
const std::string kFlags = kLayout + " --train-iters 3";

Outcome debug(const std::string& script, const std::string& log_dir, const std::string& flags = kFlags) {
  return run_command("printf '" + script + "' | " RANKLAB_PROGRAM " debug" + flags + " --log-dir " + log_dir + " 2>&1");
}

// What the prompt printed: from the first pause on, without the rows of steps, which hold wall times.
std::vector<std::string> dialogue(const std::string& output) {
  std::vector<std::string> lines;
  std::istringstream in(output);
  const std::regex row("^ +[0-9]+ +[0-9.]+ .*%$");
  bool begun = false;
  for (std::string line; std::getline(in, line);) {
    begun = begun || line.starts_with("step 0, ");
    if (line.starts_with("interrupted after") || line.starts_with("done after")) break;
    if (begun && !line.empty() && !std::regex_match(line, row)) lines.push_back(line);
  }
  return lines;
}

std::string hash_in(const std::string& line) { return line.substr(line.find("hash ")); }

TEST(DebugTest, AScriptGivesTheseLines) {
  const std::string script =
      "break F mb=3 rank=2\\ncontinue\\nwhere\\ndelete\\nnext\\nprint loss\\nbreak all_reduce axis=dp rank=1\\nc\\n"
      "delete 2\\nrank 5 2\\nquit\\n";
  const Outcome first = debug(script, temporary_path("debug_first"));
  EXPECT_EQ(first.exit_code, 0) << first.output;
  const std::vector<std::string> lines = dialogue(first.output);
  ASSERT_GE(lines.size(), 17U) << first.output;
  EXPECT_THAT(lines[0], ContainsRegex("^step 0, 8 parked, 0 waiting; next is rank 0: step 0 begins, 0 ns; "
                                      "hash [0-9a-f]{16}$"));
  EXPECT_EQ(lines[1], "breakpoint 1: F rank=2 mb=3");
  EXPECT_THAT(lines[2],
              ContainsRegex("^breakpoint 1, F rank=2 mb=3: rank 2 is before F mb 3 stage 0, step 0, [0-9.]+ us$"));
  EXPECT_THAT(lines[3], HasSubstr("; next is rank 2: F mb 3 stage 0, "));
  EXPECT_THAT(lines[4], ContainsRegex("^r0 dp0 tp0 pp0  (parked |waiting)  step 0 "));
  EXPECT_THAT(lines[6], ContainsRegex("^r2 dp1 tp0 pp0  parked   step 0 .* before F mb 3 stage 0$"));
  EXPECT_EQ(lines[12], "1 breakpoint deleted");
  EXPECT_THAT(lines[13], HasSubstr("step 1, 8 parked, 0 waiting; next is rank 0: step 1 begins, "));
  EXPECT_THAT(lines[14], ContainsRegex("^step 0: loss 5\\.[0-9]{6}$"));
  EXPECT_EQ(lines[15], "breakpoint 2: all_reduce axis=dp rank=1");
  EXPECT_THAT(lines[16], HasSubstr("breakpoint 2, all_reduce axis=dp rank=1: rank 1 is before all_reduce on dp [1 3]"));
  EXPECT_THAT(first.output, HasSubstr("rank 5 passed 2 events; it is where step 1 ends, "));
  EXPECT_THAT(first.output, HasSubstr("interrupted after 3 steps"));
  EXPECT_THAT(first.output, Not(HasSubstr("(ranklab)"))) << "no prompt where nobody types";

  const Outcome again = debug(script, temporary_path("debug_again"));
  EXPECT_EQ(dialogue(again.output), lines) << "the same states, with the same hashes";
}

TEST(DebugTest, AnEmptyLineRepeatsAndBeginningsOfWordsDo) {
  const std::vector<std::string> one = dialogue(debug("step 3\\nq\\n", temporary_path("debug_one")).output);
  const std::vector<std::string> other = dialogue(debug("s\\n\\n\\v\\nqui\\n", temporary_path("debug_other")).output);
  ASSERT_GE(one.size(), 5U);
  ASSERT_GE(other.size(), 7U);
  EXPECT_EQ(hash_in(one.back()), hash_in(other.back()));
  EXPECT_EQ(one[1], "rank 0 passed step 0 begins; it is before recv from 4 on pp [0 4], 0 ns");
  EXPECT_EQ(other[1], one[1]);
}

TEST(DebugTest, RanksHaveTheirExpertGroups) {
  const Outcome outcome = debug("ranks\\nq\\n", temporary_path("debug_experts"),
                                " --preset deepseek_v3_tiny --dp 2 --tp 1 --pp 1 --ep 2 --gbs 4 --mock-data "
                                "--eval-interval 0 --sample-tokens 0 --train-iters 1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("stage 0  dp[0 1]  ep[0 1]"));
}

TEST(DebugTest, TensorsEventsAndNumbers) {
  const Outcome outcome = debug(
      "break optimizer rank=3\\nprint\\nc\\ntensors r3 qkv\\ntensor r3 layers.0.attention.qkv.weight\\n"
      "tensor 3 layers.0.attention.qkv.weight.grad\\ntrace r3 12\\nhash\\nranks\\nbreaks\\nhelp\\nhelp break\\nq\\n",
      temporary_path("debug_look"), kFlags + " --check-gradient-types");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* part :
       {"no step is finished yet", "  layers.0.attention.qkv.weight\n  layers.1.attention.qkv.weight\nlayers.0",
        "layers.0.attention.qkv.weight on rank 3: fp32 [192 128] of [384 128], varying over tp, replicated over dp\n  "
        "min -",
        "not finite 0\n  first ",
        "layers.0.attention.qkv.weight.grad on rank 3: fp32 [192 128] of [384 128], varying over tp, replicated over "
        "dp",
        "rank 3\nstep 0 ", ", partial -> replicated over dp", " events  state ",
        "r7 dp1 tp1 pp1   stage 1  tp[6 7]  dp[5 7]  pp[3 7]", "  break WHERE ", " stopped 1 time\n",
        "memory/activations > 100MiB"})
    EXPECT_THAT(outcome.output, HasSubstr(part));
}

TEST(DebugTest, BadCommandsAnswerOneLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"stpe", "did you mean 'step'?"},
      {"step x", "not a number of times; got 'x'"},
      {"step 0", "1 or more"},
      {"rank", "which rank?"},
      {"rank 8", "no such rank; got '8'; want 0 to 7"},
      {"rank r1x", "no such rank"},
      {"break", "nothing to stop at"},
      {"break allreduce", "did you mean 'all_reduce'?"},
      {"break F mb=4", "no such microbatch; got 4; want 0 to 3"},
      {"break F stage=2", "no such stage; got 2; want 0 to 1"},
      {"break rank=8", "no such rank"},
      {"break step=3", "the run ends before; got step 3; want 0 to 2"},
      {"break W", "1f1b has no such action; got W; want BW, F or optimizer"},
      {"break axis=cp", "groups of one do not communicate"},
      {"delete 7", "no such breakpoint; got 7"},
      {"tensor r0", "which tensor?"},
      {"tensor r0 embed", "no tensor of that name"},
      {"tensor r0 layers.0.mlp.up.weigth", "did you mean"},
      {"tensors r0 nothing", "no parameter's name contains it"},
      {"print los", "did you mean 'loss'?"},
      {"step 3 4", "there is one word too many; got \'4\'; want step [N]"},
      {"quit now", "there is one word too many"},
      {"break loss", "a counter alone; got \'loss\'; want a condition: loss > a limit"},
      {"help stop", "no such command"},
      {"help step # and a comment", "advance N events, each on the rank with the smallest"},
      {"\\001\\002", "no such command"}};
  std::string script;
  for (const auto& [command, answer] : cases) script += command + "\\n";
  const Outcome outcome = debug(script + "# a comment\\n", temporary_path("debug_bad"));
  EXPECT_EQ(outcome.exit_code, 0);
  const std::vector<std::string> lines = dialogue(outcome.output);
  ASSERT_EQ(lines.size(), cases.size() + 1) << outcome.output;
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_THAT(lines[i + 1], HasSubstr(cases[i].second)) << cases[i].first;
}

std::vector<std::string> metrics(const std::string& log_dir) {
  std::ifstream in(log_dir + "/metrics.jsonl");
  std::vector<std::string> out;
  const std::regex numbers("\"(loss|grad_norm|virtual_step_ms|exposed_comm_fraction)\":([^,}]*)");
  for (std::string line; std::getline(in, line);) {
    std::string kept;
    for (std::sregex_iterator it(line.begin(), line.end(), numbers), end; it != end; ++it) kept += it->str() + " ";
    out.push_back(kept);
  }
  return out;
}

TEST(DebugTest, TheRunIsTheOneThatTrainMakes) {
  const std::string plain = temporary_path("debug_plain"), stepped = temporary_path("debug_stepped");
  ASSERT_EQ(run_command(RANKLAB_PROGRAM " train" + kFlags + " --log-dir " + plain + " 2>&1").exit_code, 0);
  const Outcome outcome =
      debug("step 30\\nbreak all_gather rank=4\\nc\\nc\\nc\\nd\\nmicrobatch\\nrank 7 3\\nnext\\nc\\n", stepped);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("done after 3 steps"));
  EXPECT_EQ(metrics(stepped).size(), 3U);
  EXPECT_EQ(metrics(stepped), metrics(plain));
}

TEST(DebugTest, ExitCodesAreThoseOfTrain) {
  const std::string diverges = kFlags + " --lr 1e38 --lr-warmup-iters 0 --clip-grad 0";
  const Outcome outcome = debug("break loss is nan\\nc\\nwhere\\nc\\nd\\nc\\n", temporary_path("debug_nan"), diverges);
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_THAT(outcome.output, ContainsRegex("breakpoint 1, loss is nan: rank [4-7] has loss = -?nan, step 1, "));
  EXPECT_THAT(outcome.output, HasSubstr("training diverged; got loss nan, gradient norm nan"));
  EXPECT_EQ(debug("", temporary_path("debug_eof")).exit_code, 0) << "the end of input quits";
  EXPECT_EQ(debug("", temporary_path("debug_usage"), " --pp 3").exit_code, 2);
  const Outcome cuda = debug("", temporary_path("debug_cuda"), " --backend cuda");
  EXPECT_EQ(cuda.exit_code, 2);
  EXPECT_THAT(cuda.output, HasSubstr("only ranks that are threads of this process can be paused"));
}

// The program with its stdin in the test's hand.
class Session {
 public:
  explicit Session(const std::string& flags) : output_path_(temporary_path("debug_session")) {
    const std::string log_dir = temporary_path("session_log");
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[0], STDIN_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      const std::string command =
          "exec " RANKLAB_BINARY " " + flags + " --log-dir " + log_dir + " > " + output_path_ + " 2>&1";
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(98);
    }
    ::close(ends[0]);
    stdin_ = ends[1];
  }
  ~Session() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
    ::close(stdin_);
  }
  void type(const std::string& text) { EXPECT_EQ(::write(stdin_, text.data(), text.size()), ssize_t(text.size())); }
  void signal(int number) { ::kill(pid_, number); }
  std::string output() const {
    std::ifstream in(output_path_);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  int times(const std::string& pattern) const {
    const std::regex expression(pattern);
    const std::string text = output();
    return static_cast<int>(
        std::distance(std::sregex_iterator(text.begin(), text.end(), expression), std::sregex_iterator()));
  }
  bool shows(const std::string& pattern, int count = 1) const {
    return eventually([&] { return times(pattern) >= count; });
  }
  // It trains: a step ends after `before` have.
  bool goes_on(int before) const { return shows(kStep, before + 1); }
  int steps() const { return times(kStep); }
  // The exit code of a program that ends on its own.
  int exit_code() {
    int status = 0;
    if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static constexpr const char* kStep = "\n +[0-9]+ +[0-9]+\\.[0-9]+ ";
  std::string output_path_;
  pid_t pid_ = -1;
  int stdin_ = -1;
};

// Milliseconds a step: after Ctrl-C it may take 1.2 seconds, on a busy machine, too.
const std::string kLongRun =
    "debug" + kLayout +
    " --num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 32 --train-iters 100000 --log-interval 1";

TEST(DebugTest, CtrlCPausesARunningOneAndEndsAPausedOne) {
  Session session(kLongRun);
  ASSERT_TRUE(session.shows("step 0, 8 parked")) << session.output();
  session.type("continue\n");
  ASSERT_TRUE(session.shows("\n +5 +[0-9]")) << session.output();
  session.signal(SIGINT);
  ASSERT_TRUE(session.shows("step [0-9]+, [0-9] parked, [0-9] waiting; next is rank", 2)) << session.output();
  session.type("where\n");
  ASSERT_TRUE(session.shows("\nr7 dp1 tp1 pp1 ")) << session.output();
  int paused_after = session.steps();
  session.type("continue\n");
  ASSERT_TRUE(session.goes_on(paused_after)) << session.output();
  session.type("\n");  // is read once it is paused again
  session.signal(SIGINT);
  ASSERT_TRUE(session.shows("; next is rank", 3)) << session.output();
  paused_after = session.steps();
  ASSERT_TRUE(session.goes_on(paused_after)) << session.output();
  session.signal(SIGINT);
  ASSERT_TRUE(session.shows("; next is rank", 4)) << session.output();
  session.signal(SIGINT);
  EXPECT_EQ(session.exit_code(), 130) << session.output();
  EXPECT_THAT(session.output(), HasSubstr("interrupted after ")) << "log and trace are kept";
}

TEST(DebugTest, SigtermEndsAPausedOneToo) {
  Session session(kLongRun);
  ASSERT_TRUE(session.shows("step 0, 8 parked")) << session.output();
  session.signal(SIGTERM);
  EXPECT_EQ(session.exit_code(), 143) << session.output();
}

TEST(DebugTest, HelpShowsHow) {
  const Outcome help = run_command(RANKLAB_PROGRAM " debug --help");
  EXPECT_THAT(help.output, AllOf(HasSubstr("--pipeline-schedule"), HasSubstr("break F mb=3 rank=2")));
  EXPECT_THAT(run_command(RANKLAB_PROGRAM " --help").output, HasSubstr("debug"));
}

}  // namespace
}  // namespace ranklab
