// `ranklab lesson list | progress`: shows the learner's progress.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/common/json_output.h"
#include "cli/common/typed_program.h"
#include "cli/lesson/lesson_session.h"
#include "core/base/text.h"

namespace ranklab {

using lesson::Ink;

namespace {

std::string status_of(const lesson::LessonState& state, bool current) {
  if (state.passed) return "passed";
  if (state.attempts > 0) return "tried " + std::to_string(state.attempts) + (state.attempts == 1 ? " time" : " times");
  return state.exercise.empty() ? (current ? "next" : "") : "started";
}

int passed_count(const lesson::Progress& progress) {
  int count = 0;
  for (const auto& row : lesson::lesson_list()) {
    const auto it = progress.lessons.find(row.slug);
    count += it != progress.lessons.end() && it->second.passed ? 1 : 0;
  }
  return count;
}

// The content of `list` and `progress` as JSON.
int print_progress_json() {
  lesson::Progress progress = lesson::Progress::load();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& row : lesson::lesson_list()) {
    const lesson::LessonState& state = progress.lessons[row.slug];
    rows.push_back({{"number", row.number},
                    {"name", row.slug},
                    {"question", row.title},
                    {"passed", state.passed},
                    {"checks", state.attempts},
                    {"hints", state.hints},
                    {"prediction", state.prediction},
                    {"solution_seen", state.solution_seen},
                    {"exercise", state.exercise}});
  }
  std::cout << json_result({{"current", progress.current}, {"passed", passed_count(progress)}, {"lessons", rows}});
  return 0;
}

}  // namespace

int lesson_list_all(const LessonRequest& request) {
  if (request.json) return print_progress_json();
  lesson::Screen screen = lesson_screen();
  lesson::Progress progress = lesson::Progress::load();
  std::vector<lesson::Cells> rows = {{"", "lesson", "name", "question", ""}};
  for (const auto& row : lesson::lesson_list()) {
    const lesson::LessonState& state = progress.lessons[row.slug];
    const bool current = row.number == progress.current && !state.passed;
    rows.push_back({state.passed ? screen.paint(Ink::kGreen, "✔")
                    : current    ? screen.paint(Ink::kYellow, "▶")
                                 : "·",
                    std::to_string(row.number), row.slug, row.title, status_of(state, current)});
  }
  screen.table(rows);
  screen.line();
  screen.line("  Start or resume: " + typed_program() + " lesson start");
  return 0;
}

int lesson_progress(const LessonRequest& request) {
  if (request.json) return print_progress_json();
  lesson::Screen screen = lesson_screen();
  lesson::Progress progress = lesson::Progress::load();
  const int all = static_cast<int>(lesson::lesson_list().size()), passed = passed_count(progress);
  constexpr int kBar = 32;
  const int filled = kBar * passed / all;
  screen.line("  " + screen.paint(Ink::kGreen, lesson::repeated("█", filled)) + lesson::repeated("░", kBar - filled) +
              strprintf("  %d of %d lessons passed", passed, all));
  screen.line();
  std::vector<lesson::Cells> rows = {{"lesson", "question", "checks", "hints", "predicted", ""}};
  for (const auto& row : lesson::lesson_list()) {
    const lesson::LessonState& state = progress.lessons[row.slug];
    rows.push_back({std::to_string(row.number), row.title, std::to_string(state.attempts), std::to_string(state.hints),
                    state.prediction,
                    status_of(state, row.number == progress.current) + (state.solution_seen ? ", solution seen" : "")});
  }
  screen.table(rows);
  return 0;
}

}  // namespace ranklab
