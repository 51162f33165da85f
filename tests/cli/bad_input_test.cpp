// Every line of bad_inputs/*.txt is run as a user would type it: the exit code must be the documented one, within a
// second, and the one-line error must name the field, the value, its source, what would be legal, and
// what to do.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

struct BadInput {
  std::string file;
  int exit_code = 0;
  std::string command;
  std::vector<std::string> parts;  // of the error; "a|b" means either
};

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + separator.size())
    out.push_back(text.substr(begin, end - begin));
  out.push_back(text.substr(begin));
  return out;
}

std::vector<BadInput> bad_inputs() {
  std::vector<BadInput> rows;
  for (const auto& entry : fs::directory_iterator(fs::path(RANKLAB_TEST_DIR) / "bad_inputs")) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      const size_t space = line.find(' '), arrow = line.find(" => ");
      EXPECT_NE(arrow, std::string::npos) << line;
      rows.push_back({.file = entry.path().stem().string(),
                      .exit_code = std::stoi(line.substr(0, space)),
                      .command = line.substr(space + 1, arrow - space - 1),
                      .parts = split(line.substr(arrow + 4), "; ")});
    }
  }
  return rows;
}

// Shell functions that commands of the table may use.
std::string prelude() {
  const std::string tests = RANKLAB_TEST_DIR "/..";
  return "ranklab() { timeout 60 " RANKLAB_PROGRAM
         " \"$@\"; }\n"
         "toml() { printf \"$1\" > c.toml; }\n"
         "fineweb_head() { perl -e 'print pack(\"l<3x1012\", @ARGV)' -- \"$@\"; }\n"
         "shards() { cp -r ../sound/. .; }\n"
         "tok() { cp -r ../tokenizer/tok .; }\n"
         "tok_shards() { echo the > b.txt; ranklab data prepare b.txt --tokenizer tok --out d >/dev/null; }\n"
         "pattern_tok() { printf '{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
         "\"Split\", "
         "\"pattern\": {\"Regex\": \"%s\"}, \"behavior\": \"Isolated\"}, {\"type\": \"ByteLevel\", \"use_regex\": "
         "false}]}, "
         "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": []}}' \"$1\" > p.json; }\n"
         "trace_file() { cp " +
         tests +
         "/fuzz/corpus/trace/two_ranks.json t.json; }\n"
         "profile() { cat " +
         tests + "/../core/sim/profiles/h100-sxm.toml; }\n";
}

class BadInputs : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("ranklab_bad_" + std::to_string(::getpid()));
    const fs::path sound = root_ / "sound";  // what the shards of the table are copies of
    fs::create_directories(sound);
    std::ofstream(sound / "a.txt") << "hello world, these are tokens of a shard";
    ASSERT_EQ(run_command("cd " + sound.string() + " && " RANKLAB_PROGRAM " data prepare a.txt --out d").exit_code, 0);
    const fs::path tokenizer = root_ / "tokenizer";
    fs::create_directories(tokenizer);
    std::ofstream words(tokenizer / "words.txt");
    for (int i = 0; i < 60; ++i) words << "the rank " << i * i << " sends the gradients of the layers\n";
    words.close();
    ASSERT_EQ(run_command("cd " + tokenizer.string() +
                          " && " RANKLAB_PROGRAM " data tokenizer train words.txt --vocab-size 300 -o tok")
                  .exit_code,
              0);
  }
  void TearDown() override { fs::remove_all(root_); }

  // Runs the row in a folder of its own.
  Outcome run(const BadInput& row, size_t number) const {
    const fs::path folder = root_ / std::to_string(number);
    fs::create_directories(folder);
    std::ofstream(folder / "run.sh") << prelude() << row.command << "\n";
    return run_command("cd " + folder.string() +
                       " && export RANKLAB_FORK_SERVER_TIMES=" + (folder / "cpu_of_copies").string() +
                       " && bash -c \"TIMEFORMAT='%U %S'; { time bash run.sh 2>&1; } 2>cpu\"");
  }
  // Processor time: on a busy machine a refusal waits for a processor, which is not its fault. Of the shell and of what
  // its clients had done for them.
  double cpu_seconds(size_t number) const {
    double sum = 0;
    for (const char* file : {"cpu", "cpu_of_copies"}) {
      std::ifstream in(root_ / std::to_string(number) / file);
      for (double seconds = 0; in >> seconds;) sum += seconds;
    }
    return sum;
  }
  void check(const BadInput& row, size_t number) const;
  fs::path root_;
};

bool contains(const std::string& text, const std::string& alternatives) {
  const std::vector<std::string> parts = split(alternatives, "|");
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return text.find(part) != std::string::npos; });
}

void BadInputs::check(const BadInput& row, size_t number) const {
  const Outcome outcome = run(row, number);
  const std::string what = row.file + ": " + row.command + "\n" + outcome.output;
  EXPECT_EQ(outcome.exit_code, row.exit_code) << what;
  const double took_s = cpu_seconds(number);
  EXPECT_GT(took_s, 0) << what;
  EXPECT_LT(took_s, 1.5) << what;
  for (const std::string& part : row.parts) EXPECT_TRUE(contains(outcome.output, part)) << part << " in " << what;
  if (row.exit_code == 4) return;  // a failed check prints what it found
  const std::vector<std::string> lines = split(outcome.output, "\n");
  const auto is_error = [](const std::string& line) { return line.starts_with("ranklab: error: "); };
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), is_error), 1) << what;
  EXPECT_TRUE(lines.size() > 1 && is_error(lines[lines.size() - 2]) && lines.back().empty()) << what;
  EXPECT_TRUE(contains(outcome.output, "; do: ")) << "it does not say what to do: " << what;
}

TEST_F(BadInputs, EachIsRefusedAtOnceInOneClearLine) {
  const std::vector<BadInput> rows = bad_inputs();
  EXPECT_GE(rows.size(), 150u);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < rows.size(); i = next++) check(rows[i], i);
  };
  std::thread second(work);
  work();
  second.join();
}

}  // namespace
}  // namespace ranklab
