// `ranklab lesson` as a learner meets it: a folder of one's own, one command after another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char* const kFolders[] = {"00_what_is_a_rank",
                                "01_all_reduce",
                                "02_replicas_stay_equal",
                                "03_split_matmul",
                                "04_why_pipelines_idle",
                                "05_can_the_bubble_shrink",
                                "06_who_talks_to_whom_in_moe",
                                "07_where_does_memory_go",
                                "08_can_compute_buy_memory",
                                "09_who_owns_what_in_zero",
                                "10_what_do_8_bits_lose",
                                "11_can_4_bits_train",
                                "12_split_a_long_sequence",
                                "13_choose_a_layout",
                                "14_find_the_wrong_reduction",
                                "15_who_is_missing",
                                "16_who_is_slow",
                                "17_which_copies_drift",
                                "18_how_rarely_may_replicas_talk"};
const int kLessons = std::size(kFolders);

class Learner : public ::testing::Test {
 protected:
  Learner() : home_(fs::path(::testing::TempDir()) / ("ranklab_learner_" + std::to_string(::getpid()))) {
    fs::remove_all(home_);
    fs::create_directories(home_);
  }
  ~Learner() override { fs::remove_all(home_); }

  std::string line(const std::string& arguments) const {
    return "cd '" + home_.string() + "' && RANKLAB_STATE_DIR=state '" RANKLAB_PROGRAM "' lesson " + arguments +
           " 2>&1 </dev/null";
  }
  Outcome lesson(const std::string& arguments) const { return run_command(line(arguments)); }
  std::string passing(const std::string& arguments) const {
    const Outcome outcome = lesson(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.output;
    return outcome.output;
  }
  fs::path file(int number) const { return home_ / "ranklab-lessons" / kFolders[number] / "exercise.cpp"; }
  void solve(int number) const {
    const fs::path solution = fs::path(RANKLAB_LESSONS) / kFolders[number] / "solution.cpp";
    fs::copy_file(solution, file(number), fs::copy_options::overwrite_existing);
  }

  const fs::path home_;
};

TEST_F(Learner, GoesThroughTheFirstLesson) {
  EXPECT_THAT(passing("list"), AllOf(HasSubstr("▶       0  what_is_a_rank"), HasSubstr("ranklab lesson start")));
  EXPECT_THAT(passing("start"), AllOf(HasSubstr("Lesson 0: What is a rank?"), HasSubstr("Which rank is"),
                                      HasSubstr("ranklab-lessons/00_what_is_a_rank/exercise.cpp")));
  EXPECT_THAT(passing("run --predict 6"),
              AllOf(HasSubstr("predicted  6"), HasSubstr("measured   7"), HasSubstr("not what you expected")));
  const Outcome failing = lesson("check");
  EXPECT_EQ(failing.exit_code, 4);
  EXPECT_THAT(failing.output, AllOf(HasSubstr("compiled in"), HasSubstr("tp 1, dp 0, pp 1"),
                                    HasSubstr("not passed: 11 of 12 rows differ"), HasSubstr("ranklab lesson hint 0")));
  EXPECT_EQ(lesson("solution").exit_code, 2);
  solve(0);
  EXPECT_THAT(passing("check"), AllOf(HasSubstr("passed: lesson 0"), HasSubstr("ranklab lesson start 1")));
  EXPECT_THAT(passing("solution"), HasSubstr("extern \"C\" void coord"));
  EXPECT_THAT(passing("progress"), AllOf(HasSubstr("1 of 19 lessons passed"), Not(HasSubstr("solution seen"))));
  EXPECT_THAT(passing("list"), HasSubstr("✔       0"));
  EXPECT_THAT(passing("start"), HasSubstr("Lesson 1:")) << "goes on with the next one";
}

TEST_F(Learner, EveryLessonFailsAsGivenAndPassesWhenSolved) {
  for (int number = 0; number < kLessons; ++number) {
    const std::string n = std::to_string(number);
    passing("start " + n);
    EXPECT_EQ(lesson("check").exit_code, 4) << n;
    solve(number);
    EXPECT_THAT(passing("check"), HasSubstr("passed: lesson " + n));
  }
  EXPECT_THAT(passing("progress"), HasSubstr("19 of 19 lessons passed"));
  EXPECT_THAT(passing("check 9"), HasSubstr("That was the last one"));
}

// What stands between backquotes in a lesson's text, and begins as a command does.
std::vector<std::string> commands_in(const std::string& markdown) {
  const std::string text = std::regex_replace(markdown, std::regex("\\s+"), " ");
  const std::regex command("`ranklab ([^`]*)`");
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), command); it != std::sregex_iterator(); ++it)
    found.push_back((*it)[1]);
  return found;
}

// Nothing is run: an option that no command has is reported only if everything before it is valid.
TEST(LessonText, NamesCommandsThatThereAre) {
  for (const char* folder : kFolders) {
    const std::vector<std::string> commands =
        commands_in(text_of_file(fs::path(RANKLAB_LESSONS) / folder / "README.md"));
    EXPECT_GE(commands.size(), 2U) << folder;
    for (const std::string& command : commands) {
      EXPECT_THAT(ranklab_and_errors(command + " --no-such-option </dev/null").output,
                  testing::AnyOf(HasSubstr("unknown option or command; got '--no-such-option'"),
                                 HasSubstr(" is missing; want ")))  // "`ranklab ckpt diff` of two checkpoints"
          << folder << ": " << command;
      if (!command.starts_with("train")) continue;
      const Outcome planned = ranklab_and_errors(command + " --dry-run");
      EXPECT_EQ(planned.exit_code, 0) << folder << ": " << command << "\n" << planned.output;
    }
  }
}

TEST_F(Learner, SeesTheFlagsOfEachHunt) {
  EXPECT_THAT(passing("hunt"), AllOf(HasSubstr("--load FOLDER"), Not(HasSubstr("{folder}"))));
  EXPECT_THAT(passing("hunt 1 --hint --json"), HasSubstr("\"hint\": \"too few bits\""));
}

// Every part of this model is first wrong in some hunt, but a part that it does not have is not an answer.
TEST_F(Learner, AnswersAHunt) {
  for (const char* answer : {"1 --module nonsense --axis none", "1 --module layers.99.mlp --axis none",
                             "1 --module layers.0.mlp", "--module layers.0.mlp --axis none", "--hint"})
    EXPECT_EQ(lesson(std::string("hunt ") + answer).exit_code, 2) << answer;
  EXPECT_EQ(lesson("hunt 1 --module layers.0.mlp --axis tp").exit_code, 4);
  EXPECT_THAT(passing("hunt 1 --module layers.0.mlp --axis none"), HasSubstr("It is bf16-no-master"));
}

TEST_F(Learner, GetsHintsOneByOne) {
  EXPECT_THAT(passing("hint 1"), AllOf(HasSubstr("Hint 1 of 3"), Not(HasSubstr("Hint 2")),
                                       HasSubstr("run this again: "), HasSubstr("the number is the lesson's")));
  EXPECT_THAT(passing("hint all_reduce"), AllOf(HasSubstr("Hint 2 of 3"), HasSubstr("buffer")));
  EXPECT_THAT(passing("hint 1"), AllOf(HasSubstr("Hint 3 of 3"), HasSubstr("That was the last one")));
  EXPECT_THAT(passing("hint 1"), AllOf(HasSubstr("Hint 3 of 3"), HasSubstr("--force")));
  EXPECT_THAT(passing("hint 0"), HasSubstr("Hint 1 of 3")) << "each lesson counts its own";
}

TEST_F(Learner, MayForceTheSolution) {
  const Outcome refused = lesson("solution 2");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output, AllOf(HasSubstr("not passed"), HasSubstr("--force"), Not(HasSubstr("start_all_reduce"))));
  EXPECT_THAT(passing("solution 2 --force"), HasSubstr("start_all_reduce"));
  EXPECT_THAT(passing("progress"), HasSubstr("solution seen"));
}

TEST_F(Learner, NeverLosesWork) {
  passing("start 1");
  std::ofstream(file(1)) << "my work\n";
  EXPECT_THAT(passing("start 1"), HasSubstr("already yours, left unchanged"));
  EXPECT_EQ(text_of_file(file(1)), "my work\n");
  EXPECT_THAT(passing("reset"), HasSubstr("exercise.cpp.backup-1"));
  EXPECT_EQ(text_of_file(file(1).string() + ".backup-1"), "my work\n");
  EXPECT_EQ(text_of_file(file(1)), text_of_file(fs::path(RANKLAB_LESSONS) / kFolders[1] / "exercise.cpp"));
  std::ofstream(file(1)) << "more work\n";
  EXPECT_THAT(passing("reset 1"), HasSubstr("backup-2"));
  EXPECT_EQ(text_of_file(file(1).string() + ".backup-1"), "my work\n");
}

TEST_F(Learner, FindsEveryHeaderByWhatStartSays) {
  for (int number = 0; number < kLessons; ++number) {
    const std::string started = passing("start " + std::to_string(number));
    const std::string folder = std::string(RANKLAB_LESSONS) + "/" + kFolders[number];
    EXPECT_THAT(started, HasSubstr(folder + "/exercise.h")) << number;
    const std::string exercise = text_of_file(file(number)), header = text_of_file(folder + "/exercise.h");
    for (const char* api : {"lesson_api.h", "order_api.h"}) {
      const bool included = header.find(api) != std::string::npos;
      EXPECT_EQ(started.find(std::string("/lessons/") + api) != std::string::npos, included) << number << api;
    }
    // As clangd does.
    const std::string compile = "cd '" + file(number).parent_path().string() +
                                "' && c++ $(cat compile_flags.txt) -fsyntax-only exercise.cpp 2>&1";
    EXPECT_EQ(run_command(compile).output, "") << number;
  }
  const fs::path flags = file(0).parent_path() / "compile_flags.txt";
  std::ofstream(flags) << "-my-own\n";
  passing("start 0");
  EXPECT_EQ(text_of_file(flags), "-my-own\n");
}

// Commands are printed as they must be typed here, however the program was started.
TEST_F(Learner, IsToldWhatToType) {
  const std::string here = home_.string();
  fs::create_directories(home_ / "bin");
  for (const fs::path& driver : {home_ / "ranklab", home_ / "bin/ranklab"}) {  // has nothing to build
    std::ofstream(driver) << "#!/bin/sh\n";
    fs::permissions(driver, fs::perms::owner_all);
  }
  const auto started = [&](const std::string& environment, const std::string& arguments = "start 0") {
    return run_command("cd '" + here + "' && RANKLAB_STATE_DIR=state " + environment +
                       " '" RANKLAB_PROGRAM "' lesson " + arguments + " 2>&1 </dev/null")
        .output;
  };
  const std::string wrapped = started("RANKLAB_DRIVER='" + here + "/ranklab'");
  EXPECT_THAT(wrapped, AllOf(HasSubstr("  ./ranklab lesson check 0 "), HasSubstr("`./ranklab lesson run 0`")));
  EXPECT_THAT(wrapped, Not(HasSubstr("`ranklab")));
  EXPECT_THAT(started("RANKLAB_DRIVER='" + here + "/bin/ranklab'"), HasSubstr("  bin/ranklab lesson check 0 "));
  EXPECT_THAT(started("RANKLAB_DRIVER='" + here + "/bin/ranklab' PATH='" + here + "/bin':$PATH"),
              HasSubstr("  ranklab lesson check 0 "));
  EXPECT_THAT(started("RANKLAB_DRIVER='" + here + "/ranklab'", "check 2"), HasSubstr("run `./ranklab lesson start 2`"));
  EXPECT_THAT(started("env -u RANKLAB_DRIVER"), HasSubstr("/ranklab lesson check 0 "));
}

TEST_F(Learner, SeesWhatTheirCodeDid) {
  passing("start 9");
  EXPECT_THAT(lesson("check").output, AllOf(HasSubstr("yours      ········"), HasSubstr("right      00000000111")));
  solve(9);
  EXPECT_THAT(passing("check"), HasSubstr("yours      0000000011111111"));
}

// The copy is found again from another folder.
TEST_F(Learner, MayChangeTheFolder) {
  passing("start 0");
  solve(0);
  const Outcome elsewhere = run_command("cd / && RANKLAB_STATE_DIR='" + (home_ / "state").string() +
                                        "' '" RANKLAB_PROGRAM "' lesson check 2>&1");
  EXPECT_EQ(elsewhere.exit_code, 0) << elsewhere.output;
}

TEST_F(Learner, KeepsAPrediction) {
  EXPECT_THAT(passing("start 1 --predict 1.75"), Not(HasSubstr("Predict first")));
  EXPECT_THAT(passing("run"), AllOf(HasSubstr("predicted  1.75 S"), HasSubstr("measured   1.75 S   right")));
  const Outcome words = lesson("run 1 --predict much");
  EXPECT_EQ(words.exit_code, 2);
  EXPECT_THAT(words.output, HasSubstr("a prediction is a number"));
}

TEST_F(Learner, SeesCompilerErrorsAtTheirLine) {
  passing("start 0");
  std::ofstream(file(0)) << "#include \"exercise.h\"\n\nint broken = ;\n";
  const Outcome outcome = lesson("check");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("exercise.cpp:3:"), HasSubstr("not passed: it does not compile")));
}

// What the code prints is not what a program reads.
TEST_F(Learner, PrintsBesideJson) {
  passing("start 0");
  std::ofstream(file(0))
      << "#include \"exercise.h\"\n#include <cstdio>\nextern \"C\" void coord(int, const "
         "ranklab::lesson::MeshSize&, ranklab::lesson::Coordinates&) { std::puts(\"my own words\"); }\n";
  EXPECT_THAT(lesson("check").output, HasSubstr("my own words\n"));
  const Outcome json = run_command(
      "cd '" + home_.string() + "' && RANKLAB_STATE_DIR=state '" RANKLAB_PROGRAM "' lesson check --json 2>/dev/null");
  EXPECT_THAT(json.output, AllOf(testing::StartsWith("{"), Not(HasSubstr("my own words"))));
}

TEST_F(Learner, IsToldOfAHang) {
  passing("start 0");
  std::ofstream(file(0)) << "#include \"exercise.h\"\nextern \"C\" void coord(int, const ranklab::lesson::MeshSize&, "
                            "ranklab::lesson::Coordinates&) { for (volatile bool on = true; on;) {} }\n";
  const Outcome outcome = lesson("check --timeout 1");
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.output, HasSubstr("did not come to an end within 1 s"));
}

TEST_F(Learner, MakesMistakes) {
  struct Mistake {
    const char* arguments;
    int code;
    const char* told;
  };
  const Mistake mistakes[] = {{"start 19", 2, "0 to 18"},
                              {"start al_reduce", 2, "did you mean"},
                              {"check 0", 1, "ranklab lesson start 0"},
                              {"watch 0", 1, "ranklab lesson start 0"},
                              {"chekc", 2, "check"},
                              {"check 0 --timeout 0", 2, "--timeout"},
                              {"check 0 --file /no/such/file.cpp", 1, "/no/such/file.cpp"}};
  for (const auto& [arguments, code, told] : mistakes) {
    const Outcome outcome = lesson(arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(told)) << arguments;
  }
  fs::create_directories(home_ / "state");
  for (const char* hints : {"-5", "99"}) {  // of another version, or by hand
    std::ofstream(home_ / "state/lessons.json")
        << R"({"schema": 1, "current": 1, "lessons": {"all_reduce": {"hints": )" << hints << "}}}";
    EXPECT_THAT(lesson("hint all_reduce").output, testing::ContainsRegex("Hint [13] of 3")) << hints;
  }
  std::ofstream(home_ / "state/lessons.json") << "{";
  EXPECT_EQ(lesson("list").exit_code, 8);
}

TEST_F(Learner, WatchesUntilItPasses) {
  passing("start 0");
  std::thread saving([this] {
    // Watching begins before the first check, so this save is seen whenever it comes.
    while (!fs::exists(home_ / "log") || text_of_file(home_ / "log").find("Watching") == std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    passing("hint 0");
    passing("hint 0");
    const fs::path fresh = home_ / "fresh.cpp";  // as editors save: a new file, renamed
    fs::copy_file(fs::path(RANKLAB_LESSONS) / kFolders[0] / "solution.cpp", fresh);
    fs::rename(fresh, file(0));
  });
  const Outcome outcome = run_command("{ " + line("watch") + "; echo code $?; } > '" + (home_ / "log").string() + "'");
  saving.join();
  EXPECT_THAT(text_of_file(home_ / "log"),
              AllOf(HasSubstr("not passed"), HasSubstr("passed: lesson 0"), HasSubstr("code 0")));
  EXPECT_THAT(passing("hint 0"), HasSubstr("Hint 3 of 3")) << "what other terminals noted meanwhile stays";
}

// A reset links a new file into the place; a link of the learner's leads to another folder.
TEST_F(Learner, WatchesAcrossAResetAndThroughALink) {
  passing("start 0");
  const std::string log = (home_ / "log").string();
  const auto watched = [&](const std::string& change) {
    fs::remove(log);
    return run_command("cd '" + home_.string() +
                       "'; RANKLAB_STATE_DIR=state '" RANKLAB_PROGRAM
                       "' lesson watch 0 >log 2>&1 & pid=$!; until grep -sq Watching '" +
                       log + "'; do sleep 0.05; done; " + change +
                       "; for i in $(seq 6000); do grep -q 'rows differ' '" + log +
                       "' && break; sleep 0.05; done; kill -KILL $pid; wait $pid; cat '" + log + "'")
        .output;
  };
  std::ofstream(file(0)) << "int broken = ;\n";
  const auto sees_both = AllOf(HasSubstr("it does not compile"), HasSubstr("11 of 12 rows differ"));
  EXPECT_THAT(watched(line("reset 0")), sees_both);
  fs::rename(file(0), home_ / "mine.cpp");
  fs::create_symlink(home_ / "mine.cpp", file(0));
  std::ofstream(home_ / "mine.cpp") << "int broken = ;\n";
  const std::string given = (fs::path(RANKLAB_LESSONS) / kFolders[0] / "exercise.cpp").string();
  EXPECT_THAT(watched("cat '" + given + "' > '" + (home_ / "mine.cpp").string() + "'"), sees_both);
}

TEST_F(Learner, LeavesTheWatchWithControlC) {
  passing("start 0");
  const std::string log = (home_ / "log").string();
  const Outcome outcome =
      run_command("cd '" + home_.string() +
                  "'; trap - INT; RANKLAB_STATE_DIR=state env --default-signal=INT '" RANKLAB_PROGRAM
                  "' lesson watch >log 2>&1 & pid=$!; until grep -q Watching '" +
                  log +
                  "'; do sleep 0.05; done; kill -INT $pid; "
                  "wait $pid; echo code $?");
  EXPECT_THAT(outcome.output, HasSubstr("code 130"));
}

TEST_F(Learner, GetsColourOnlyWhenAsked) {
  passing("start 0");
  EXPECT_THAT(passing("run 0"), Not(HasSubstr("\033")));
  EXPECT_THAT(passing("run 0 --color always"), HasSubstr("\033["));
}

TEST_F(Learner, FindsEveryLessonInTheReadme) {
  const std::string listed = passing("list"), readme = text_of_file(RANKLAB_README);
  const std::regex row("[0-9]  ([a-z0-9_]+) +([A-Z][^?]*[?])");
  int count = 0;
  for (auto it = std::sregex_iterator(listed.begin(), listed.end(), row); it != std::sregex_iterator(); ++it, ++count) {
    EXPECT_THAT(readme, HasSubstr("| `" + it->str(1) + "` | " + it->str(2) + " |"));
  }
  EXPECT_EQ(count, kLessons);
}

}  // namespace
}  // namespace ranklab
