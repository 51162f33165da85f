// The prompt of `ranklab debug`: reads commands, controls the run, prints its state. Commands are a table. A line is
// split into words; the first one names the command (its name, its letter, or a prefix of its name). Thread rule: the
// main thread, while the run continues in other threads.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/debug/debug_input.h"
#include "cli/train/train_run.h"

namespace ranklab {

class DebugPrompt {
 public:
  explicit DebugPrompt(TrainRun& run);
  ~DebugPrompt();
  // Reads commands until the run has ended or is about to end: by `quit`, the end of input, or Ctrl-C at the prompt.
  void talk();

 private:
  using Words = std::vector<std::string>;
  struct Command {
    const char* name;
    const char* letter;  // "" without one
    const char* usage;
    const char* about;
    size_t most_words;  // after its name
    void (DebugPrompt::*act)(const Words& arguments);
  };
  class LastMetrics;
  static const std::vector<Command>& commands();

  void converse();
  void execute(const std::string& line);
  const Command* find(const std::string& word) const;
  bool wait_until_paused();  // false: the run has ended
  void go(const std::function<void(Stepper&)>& move);
  int rank_of(const std::string& word) const;
  int rank_or_next(const Words& words) const;  // a word like r3 among them, else the rank that moves next
  std::shared_ptr<const RankProbe> probe(int global_rank) const;
  void check_place(const Breakpoint& breakpoint) const;

  void step(const Words& words);
  void rank(const Words& words);
  void microbatch(const Words& words);
  void next(const Words& words);
  void resume(const Words& words);
  void pause(const Words& words);
  void add_break(const Words& words);
  void remove_break(const Words& words);
  void breaks(const Words& words);
  void where(const Words& words);
  void ranks(const Words& words);
  void tensor(const Words& words);
  void tensors(const Words& words);
  void trace(const Words& words);
  void hash(const Words& words);
  void print(const Words& words);
  void help(const Words& words);
  void quit(const Words& words);

  TrainRun& run_;
  Stepper& stepper_;
  std::shared_ptr<LastMetrics> metrics_;
  DebugInput input_;
  std::string last_line_;
  bool leaving_ = false;
};

}  // namespace ranklab
