// Lesson 13: layouts of a 70B model on 512 GPUs; the learner's choice compared with the best one that the search finds.
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "lessons/13_choose_a_layout/planned_layout.h"
#include "lessons/exercise_library.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"

namespace ranklab::lesson {
namespace {

constexpr double kBehind = 1.1;  // allowed step time, relative to the best
constexpr int kGpus = 512, kSequences = 1024;

struct Case {
  int gpus, sequences;
  LayoutChoice best;  // from `ranklab plan search --preset llama_70b --bf16`; a test looks for better ones
};
const std::array kCases = {
    Case{kGpus, kSequences, {.tp = 2, .zero_stage = 3}},
    Case{kGpus, 128, {.tp = 4, .zero_stage = 3}},
    Case{64, 256, {.tp = 4, .zero_stage = 3}},
};

struct Shown {
  const char* name;
  LayoutChoice layout;
};
const std::array kShown = {
    Shown{"tp 2, ZeRO-3", {.tp = 2, .zero_stage = 3}},
    Shown{"tp 8, 8 stages", {.tp = 8, .pp = 8, .zero_stage = 1}},
    Shown{"16 stages", {.tp = 1, .pp = 16, .zero_stage = 1, .recompute = "full"}},
    Shown{"ZeRO-3 alone", {.tp = 1, .zero_stage = 3, .recompute = "full"}},
    Shown{"tp 16, ZeRO-3", {.tp = 16, .zero_stage = 3}},
};

std::string seconds(double s) { return strprintf("%.1f s", s); }
std::string share(double part, double whole) { return strprintf("%.1f %%", 100 * part / whole); }
LayoutTime shown(size_t which) { return plan_of(problem_of(kGpus, kSequences), kShown[which].layout); }
double lost(const LayoutTime& time) { return time.waiting_s + time.tp_s + time.other_s; }

// A step as a bar: compute, exposed communication, waiting.
std::string bar(const LayoutTime& time, double longest) {
  constexpr double kColumns = 34;
  const auto columns = [&](double s) { return static_cast<int>(std::lround(kColumns * s / longest)); };
  return repeated("█", columns(time.compute_s)) + repeated("▒", columns(time.tp_s + time.other_s)) +
         repeated("░", columns(time.waiting_s));
}

class ChooseALayout final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const LayoutTime best = shown(0), usual = shown(1);
    return {{"step, tp 2 and ZeRO-3", seconds(best.step_s)},
            {"step, tp 8 and 8 stages", seconds(usual.step_s)},
            {"lost there", share(lost(usual), usual.step_s)},
            {"step, ZeRO-3 alone", seconds(shown(3).step_s)},
            {"step, tp 16", seconds(shown(4).step_s)}};
  }

  Question question() const override {
    return {.text =
                "Llama 3.1 70B on 512 H100s, 1024 sequences of 8192 tokens a step, tp 8 and 8 stages (1F1B, "
                "microbatches of one sequence). Which percentage of the step does a GPU not compute?",
            .unit = "%",
            .tolerance = 5};
  }

  double run(Screen& screen) const override {
    screen.heading("Llama 3.1 70B on 512 H100s, 1024 sequences a step");
    std::vector<Cells> rows = {{"layout", "memory", "step", "MFU", "compute", "exposed tp", "other", "waiting"}};
    double answer = 0;
    for (size_t i = 0; i < kShown.size(); ++i) {
      const LayoutTime time = shown(i);
      rows.push_back({kShown[i].name, human_bytes(time.bytes), seconds(time.step_s),
                      strprintf("%.1f %%", 100 * time.mfu), seconds(time.compute_s), seconds(time.tp_s),
                      seconds(time.other_s), seconds(time.waiting_s)});
      if (i == 1) answer = 100 * lost(time) / time.step_s;
    }
    screen.table(rows);
    return answer;
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    const auto choose = exercise.function<decltype(::choose_layout)>("choose_layout");
    std::vector<CheckRow> rows;
    picture.line("  A step: █ compute, ▒ exposed communication, ░ waiting in the pipeline");
    for (const Case& one : kCases) {
      const Problem problem = problem_of(one.gpus, one.sequences);
      Layout layout;
      choose(problem, layout);
      const LayoutTime best = plan_of(problem, one.best);
      const std::string name = strprintf("%d GPUs, %d sequences", one.gpus, one.sequences);
      picture.line("  " + name);
      const LayoutChoice chosen = as_choice(layout);
      std::optional<LayoutTime> time;
      std::string refused;
      try {
        time = plan_of(problem, chosen);
      } catch (const Error& error) {
        refused = error.text().what;
      }
      add_rows(rows, name, problem, best, time, refused);
      const double longest = std::max(best.step_s, time ? time->step_s : 0.0);
      picture.line("    yours  " +
                   (time ? bar(*time, longest) + " " + described(chosen, *time) : chosen.flags() + ": " + refused));
      picture.line("    right  " + bar(best, longest) + " " + described(one.best, best));
    }
    return rows;
  }

 private:
  static std::string described(const LayoutChoice& layout, const LayoutTime& time) {
    return strprintf("tp %d pp %d ZeRO-%d, %s", layout.tp, layout.pp, layout.zero_stage,
                     human_bytes(time.bytes).c_str());
  }

  static void add_rows(std::vector<CheckRow>& rows, const std::string& name, const Problem& problem,
                       const LayoutTime& best, const std::optional<LayoutTime>& time, const std::string& refused) {
    rows.push_back({name + ": sizes", "divide", time ? "divide" : refused, "exact", time.has_value()});
    const bool fits = time && time->bytes <= most_bytes(problem);
    rows.push_back({name + ": memory", "<= " + human_bytes(most_bytes(problem)),
                    time ? human_bytes(time->bytes) : "no plan", "at most", fits});
    const bool fast = time && time->step_s <= kBehind * best.step_s;
    rows.push_back(
        {name + ": step", seconds(best.step_s), time ? seconds(time->step_s) : "no plan", "at most 10 % longer", fast});
  }
};

}  // namespace

LessonPtr make_choose_a_layout() { return std::make_unique<ChooseALayout>(); }

}  // namespace ranklab::lesson
