#include "cli/debug/debug_prompt.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <sstream>

#include "cli/common/interrupt.h"
#include "cli/debug/debug_text.h"
#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/config/batch_choice.h"

namespace ranklab {
namespace {

constexpr std::chrono::milliseconds kTick{20};
constexpr int64_t kShownSteps = 20;  // per command; each step prints a line
constexpr size_t kAny = ~size_t{0};

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                         const std::string& fix = {}) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "debug", .what = what, .got = got, .want = want, .fix = fix.empty() ? "see: help" : fix});
}

int64_t count_of(const std::string& word, const std::string& what = "not a number of times") {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 1 || value > 1'000'000'000)
    refuse(what, quote(word), "1 or more");
  return value;
}

bool names_rank(const std::string& word) {
  return word.size() > 1 && word[0] == 'r' && word.find_first_not_of("0123456789", 1) == std::string::npos;
}

std::set<std::string> actions_of(const Schedule& schedule) {
  std::set<std::string> out;
  for (const auto& actions : schedule.ranks) {
    for (const Action& a : actions) {
      if (a.has_forward()) out.insert("F");
      if (a.has_input_grad()) out.insert(a.has_weight_grad() ? "BW" : "B");
      if (a.kind == ActionKind::kW) out.insert("W");
    }
  }
  return out;
}

}  // namespace

class DebugPrompt::LastMetrics : public Hook {
 public:
  void on_step_end(const StepMetrics& metrics) override {
    const std::lock_guard lock(mutex_);
    metrics_ = metrics;
  }
  std::optional<StepMetrics> get() const {
    const std::lock_guard lock(mutex_);
    return metrics_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<StepMetrics> metrics_;
};

const std::vector<DebugPrompt::Command>& DebugPrompt::commands() {
  static const std::vector<Command> kCommands = {
      {"step", "s", "step [N]", "advance N events, each on the rank with the smallest virtual time", 1,
       &DebugPrompt::step},
      {"rank", "r", "rank R [N]", "advance rank R by N events; other ranks only where it waits for them", 2,
       &DebugPrompt::rank},
      {"microbatch", "m", "microbatch", "advance every rank to its next microbatch", 0, &DebugPrompt::microbatch},
      {"next", "n", "next [N]", "run to the beginning of the N-th next training step", 1, &DebugPrompt::next},
      {"continue", "c", "continue", "run to a breakpoint, Ctrl-C or the end", 0, &DebugPrompt::resume},
      {"pause", "", "pause", "pause a running training (or press Ctrl-C)", 0, &DebugPrompt::pause},
      {"break", "b", "break WHERE", "set a breakpoint; see: help break", kAny, &DebugPrompt::add_break},
      {"delete", "d", "delete [N]", "delete breakpoint N, or all", 1, &DebugPrompt::remove_break},
      {"breaks", "", "breaks", "list the breakpoints and how often each stopped the run", 0, &DebugPrompt::breaks},
      {"where", "w", "where", "show where each rank is and for whom it waits", 0, &DebugPrompt::where},
      {"ranks", "", "ranks", "show coordinates, stages and groups of each rank", 0, &DebugPrompt::ranks},
      {"tensor", "t", "tensor rR NAME", "show a parameter of rank R, or its gradient: NAME.grad", 2,
       &DebugPrompt::tensor},
      {"tensors", "", "tensors [rR] [TEXT]", "list rank R's parameters whose names contain TEXT", 2,
       &DebugPrompt::tensors},
      {"trace", "", "trace [rR] [N]", "show the last N events that rank R recorded (10)", 2, &DebugPrompt::trace},
      {"hash", "h", "hash", "show hashes of the state and of the weights of each rank", 0, &DebugPrompt::hash},
      {"print", "p", "print loss | grad_norm | lr | metrics", "show a metric of the last finished step", 1,
       &DebugPrompt::print},
      {"help", "", "help [COMMAND]", "show this list, or the help of one command", 1, &DebugPrompt::help},
      {"quit", "q", "quit", "finish the step without stopping, and end the run", 0, &DebugPrompt::quit},
  };
  return kCommands;
}

DebugPrompt::DebugPrompt(TrainRun& run)
    : run_(run), stepper_(*run.stepper()), metrics_(std::make_shared<LastMetrics>()) {
  run_.add_hook(metrics_);
}

DebugPrompt::~DebugPrompt() = default;

void DebugPrompt::talk() {
  converse();
  take_ctrl_c(-1);
}

void DebugPrompt::converse() {
  if (!wait_until_paused()) return;
  say(pause_text(stepper_.state()));
  while (!leaving_) {
    const std::optional<std::string> line = input_.next_line();
    if (!line) break;
    const std::string& text = is_blank(*line) ? last_line_ : *line;
    if (text.empty() || text[0] == '#') continue;
    last_line_ = text;
    try {
      execute(text);
    } catch (const Error& error) {
      say(std::string(error.what()) + "\n");
    }
    if (stepper_.state().mode == StepperMode::kEnded) return;
  }
  if (input_.ctrl_c()) interrupt_run();
  if (input_.interactive() && !leaving_) say("\n");
  leaving_ = true;
  run_.stop();
  stepper_.detach();
}

void DebugPrompt::execute(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word && word[0] != '#';) words.push_back(word);
  const Command* command = find(words[0]);
  if (command == nullptr) {
    const std::vector<std::string> names = row_names(commands());
    refuse("no such command", quote(words[0].substr(0, 40)), join(std::span<const std::string>(names), ", "),
           did_you_mean(words[0], names, "see: help"));
  }
  words.erase(words.begin());
  if (words.size() > command->most_words)
    refuse("there is one word too many", quote(words[command->most_words].substr(0, 40)), command->usage);
  (this->*command->act)(words);
}

const DebugPrompt::Command* DebugPrompt::find(const std::string& word) const {
  for (const Command& each : commands())
    if (word == each.name || word == each.letter) return &each;
  for (const Command& each : commands())
    if (std::string_view(each.name).starts_with(word)) return &each;
  return nullptr;
}

bool DebugPrompt::wait_until_paused() {
  while (!stepper_.wait_paused(kTick)) {
    if (input_.ctrl_c()) stepper_.pause();
  }
  return stepper_.state().mode == StepperMode::kPaused;
}

void DebugPrompt::go(const std::function<void(Stepper&)>& move) {
  move(stepper_);
  if (wait_until_paused()) say(pause_text(stepper_.state()));
}

int DebugPrompt::rank_of(const std::string& word) const {
  const std::string digits = names_rank(word) ? word.substr(1) : word;
  int value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const int size = run_.plan().mesh.world_size();
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value >= size)
    refuse("no such rank", quote(word), "0 to " + std::to_string(size - 1));
  return value;
}

int DebugPrompt::rank_or_next(const Words& words) const {
  for (const std::string& word : words)
    if (names_rank(word)) return rank_of(word);
  return std::max(next_rank(stepper_.state()), 0);
}

std::shared_ptr<const RankProbe> DebugPrompt::probe(int global_rank) const {
  auto found = stepper_.probe(global_rank);
  if (!found) refuse("rank " + std::to_string(global_rank) + " has no tensors now", "none", "a rank of a paused run");
  return found;
}

void DebugPrompt::step(const Words& words) {
  const int64_t count = words.empty() ? 1 : count_of(words[0]);
  if (count > kShownSteps) return go([&](Stepper& s) { s.step_events(count); });
  for (int64_t i = 0; i < count; ++i) {
    const StepperState before = stepper_.state();
    const auto moved = static_cast<size_t>(next_rank(before));
    stepper_.step_events(1);
    if (!wait_until_paused()) return;
    const StepperState after = stepper_.state();
    say(move_text(before.ranks[moved], after.ranks[moved]));
    if (!after.hits.empty()) break;
  }
  say(pause_text(stepper_.state()));
}

void DebugPrompt::rank(const Words& words) {
  if (words.empty()) refuse("which rank?", "none", "rank R [N]");
  const int global_rank = rank_of(words[0]);
  const int64_t count = words.size() > 1 ? count_of(words[1]) : 1;
  const StepperState before = stepper_.state();
  stepper_.step_rank(global_rank, count);
  if (!wait_until_paused()) return;
  const StepperState after = stepper_.state();
  const auto index = static_cast<size_t>(global_rank);
  say(move_text(before.ranks[index], after.ranks[index]) + pause_text(after));
}

void DebugPrompt::microbatch(const Words&) {
  go([](Stepper& s) { s.step_microbatch(); });
}

void DebugPrompt::next(const Words& words) {
  const int64_t count = words.empty() ? 1 : count_of(words[0]);
  go([&](Stepper& s) { s.step_training(count); });
}

void DebugPrompt::resume(const Words&) {
  go([](Stepper& s) { s.resume(); });
}

void DebugPrompt::pause(const Words&) { say("the run is paused; Ctrl-C pauses a running one\n"); }

// Rejects a breakpoint that no rank can ever reach, which is most likely a typing error.
void DebugPrompt::check_place(const Breakpoint& b) const {
  const RunPlan& plan = run_.plan();
  if (b.rank >= 0) rank_of(std::to_string(b.rank));
  if (b.stage >= plan.schedule.num_stages())
    refuse("no such stage", std::to_string(b.stage), "0 to " + std::to_string(plan.schedule.num_stages() - 1));
  if (b.microbatch >= plan.num_microbatches)
    refuse("no such microbatch", std::to_string(b.microbatch), "0 to " + std::to_string(plan.num_microbatches - 1));
  if (knows_its_end(plan.config) && b.step >= plan.config.train_iters)
    refuse("the run ends before", "step " + std::to_string(b.step),
           "0 to " + std::to_string(plan.config.train_iters - 1));
  if (b.axis && plan.mesh.size(*b.axis) == 1)
    refuse("groups of one do not communicate", "axis=" + std::string(name(*b.axis)), "an axis of 2 ranks or more");
  const std::set<std::string> actions = actions_of(plan.schedule);
  if (b.action.empty() || b.action == "optimizer" || actions.contains(b.action)) return;
  refuse(plan.schedule.name + " has no such action", b.action,
         join(std::span<const std::string>(std::vector<std::string>(actions.begin(), actions.end())), ", ") +
             " or optimizer");
}

void DebugPrompt::add_break(const Words& words) {
  const Breakpoint asked = parse_breakpoint(join(std::span<const std::string>(words), " "));
  check_place(asked);
  stepper_.add_breakpoint(asked);
  const Breakpoint added = stepper_.state().breakpoints.back();
  say("breakpoint " + std::to_string(added.id) + ": " + to_text(added) + "\n");
}

void DebugPrompt::remove_break(const Words& words) {
  const std::vector<Breakpoint> all = stepper_.state().breakpoints;
  const int64_t id = words.empty() ? 0 : count_of(words[0], "not a number of a breakpoint");
  int removed = 0;
  for (const Breakpoint& b : all) {
    if (id != 0 && b.id != id) continue;
    stepper_.remove_breakpoint(b.id);
    ++removed;
  }
  if (id != 0 && removed == 0) refuse("no such breakpoint", words[0], "a number of: breaks", "see: breaks");
  say(strprintf("%d breakpoint%s deleted\n", removed, removed == 1 ? "" : "s"));
}

void DebugPrompt::breaks(const Words&) { say(breakpoints_text(stepper_.state())); }
void DebugPrompt::where(const Words&) { say(where_text(stepper_.state(), run_.plan())); }
void DebugPrompt::ranks(const Words&) { say(ranks_text(run_.plan())); }

void DebugPrompt::tensor(const Words& words) {
  if (words.size() != 2) refuse("which tensor?", std::to_string(words.size()) + " words", "tensor rR NAME");
  const int global_rank = rank_of(words[0]);
  say(tensor_text(probe(global_rank)->tensor(words[1]), global_rank));
}

void DebugPrompt::tensors(const Words& words) {
  const int global_rank = rank_or_next(words);
  std::string pattern;
  for (const std::string& word : words)
    if (!names_rank(word)) pattern = word;
  std::string text;
  for (const std::string& each : probe(global_rank)->tensor_names())
    if (each.find(pattern) != std::string::npos) text += "  " + each + "\n";
  if (text.empty()) refuse("no parameter's name contains it", quote(pattern), "a part of a name", "see: tensors");
  say("rank " + std::to_string(global_rank) + "\n" + text);
}

void DebugPrompt::trace(const Words& words) {
  int64_t count = 10;
  for (const std::string& word : words)
    if (!names_rank(word)) count = count_of(word, "not a number of events");
  const int global_rank = rank_or_next(words);
  say("rank " + std::to_string(global_rank) + "\n" +
      events_text(stepper_.last_events(global_rank), static_cast<size_t>(count)));
}

void DebugPrompt::hash(const Words&) {
  const StepperState state = stepper_.state();
  std::string text;
  for (const RankState& rank : state.ranks) {
    const auto of_rank = stepper_.probe(rank.global_rank);
    text += strprintf("rank %-3d %5lld events  state %s  weights %s\n", rank.global_rank,
                      static_cast<long long>(rank.events), hash_text(rank.hash).c_str(),
                      of_rank ? hash_text(of_rank->weights_hash()).c_str() : "-");
  }
  say(text + "all      " + hash_text(state.hash) + "\n");
}

void DebugPrompt::print(const Words& words) {
  const std::string what = words.empty() ? "metrics" : words[0];
  const std::vector<std::string> known = {"loss", "grad_norm", "lr", "metrics"};
  if (std::find(known.begin(), known.end(), what) == known.end())
    refuse("no such metric", quote(what), "loss, grad_norm, lr or metrics", did_you_mean(what, known, "see: help"));
  const std::optional<StepMetrics> m = metrics_->get();
  if (!m) return say("no step is finished yet\n");
  std::string text = "step " + std::to_string(m->step) + ":";
  if (what == "loss" || what == "metrics") text += strprintf(" loss %.6f", m->loss);
  if (what == "grad_norm" || what == "metrics") text += strprintf(" grad_norm %.6f", m->grad_norm);
  if (what == "lr" || what == "metrics") text += strprintf(" lr %.4e", m->lr);
  if (what == "metrics")
    text += strprintf(" virtual_ms %.3f mfu %.1f%% exposed %.1f%%", m->virtual_step_ms, 100 * m->mfu,
                      100 * m->exposed_comm_fraction);
  say(text + "\n");
}

void DebugPrompt::help(const Words& words) {
  if (!words.empty() && std::string_view("break").starts_with(words[0])) {
    return say(
        "break EVENT [PART ...]     F, B, W, BW, optimizer, or a verb (all_reduce, all_to_all, send, ...)\n"
        "break PART ...             parts: axis=tp rank=2 step=4 mb=3 stage=1; all that are given must hold\n"
        "break CONDITION [PART ...] loss is nan, loss > 6, grad_norm > 10, memory/activations > 100MiB, memory > "
        "2GiB,\n"
        "                           activations_held > 3, wait > 2ms (a rank waited longer for its peers, in virtual "
        "time)\n"
        "  break F mb=3 rank=2      before that forward     break axis=dp      before each collective on dp\n"
        "  break step=12            where step 12 begins    break rank=3       before each event of rank 3\n");
  }
  const Command* const one = words.empty() ? nullptr : find(words[0]);
  if (!words.empty() && one == nullptr) refuse("no such command", quote(words[0].substr(0, 40)), "one of the list");
  std::string text;
  for (const Command& each : commands()) {
    if (one != nullptr && one != &each) continue;
    const std::string letter = each.letter;
    text += strprintf("  %-38s %s%s\n", each.usage, each.about, letter.empty() ? "" : (" (" + letter + ")").c_str());
  }
  if (one != nullptr) return say(text);
  say(text +
      "  an empty line repeats the last command; a word's beginning will do; Ctrl-C at the prompt ends the run\n");
}

void DebugPrompt::quit(const Words&) { leaving_ = true; }

}  // namespace ranklab
