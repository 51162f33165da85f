#include "cli/lesson/lesson_session.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/common/typed_program.h"
#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/base/shell_quote.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "lessons/workspace.h"

namespace ranklab {

using lesson::Ink;

namespace {

std::atomic<bool> g_interrupted{false};
extern "C" void on_interrupt(int /*signal*/) { g_interrupted = true; }

const lesson::LessonRow& meant(const LessonRequest& request, const lesson::Progress& progress) {
  return lesson::find_lesson(request.lesson.empty() ? std::to_string(progress.current) : request.lesson);
}

void print_rows(LessonSession& session, const lesson::Grade& grade) {
  std::vector<lesson::Cells> cells = {{"", "", "expected", "measured", "tolerance"}};
  for (const lesson::CheckRow& row : grade.rows) {
    const std::string mark =
        row.passed ? session.screen.paint(Ink::kGreen, "ok") : session.screen.paint(Ink::kRed, "NO");
    cells.push_back({mark, row.what, row.expected, row.measured, row.tolerance});
  }
  session.screen.table(cells);
  session.screen.line();
}

void print_picture(LessonSession& session, const lesson::Grade& grade) {
  if (grade.picture.empty()) return;
  session.screen.line(session.screen.paint(Ink::kBold, "What your code did, and what is right"));
  session.screen.line();
  session.screen.line(grade.picture);
}

// Says how to watch the recordings.
void print_recordings(LessonSession& session, const lesson::Grade& grade) {
  if (!grade.unrecorded.empty())
    session.screen.paragraph("The trace for the visualizer could not be saved: " + grade.unrecorded, 0, 2);
  if (grade.recordings.empty()) return;
  std::vector<lesson::Cells> rows = {{"", ""}};
  for (const std::string& path : grade.recordings)
    rows.push_back({as_typed("ranklab viz " + shell_path(shown(path)) + " --layout Stage"),
                    path.ends_with("right.json.gz") ? "plays the right one" : "plays what your code did"});
  session.screen.table(rows);
  session.screen.line();
}

void print_verdict(LessonSession& session, const lesson::Grade& grade) {
  lesson::Screen& screen = session.screen;
  if (!grade.compiled) {
    screen.line(screen.paint(Ink::kRed, "not passed") + ": it does not compile");
  } else if (!grade.problem.empty()) {
    screen.paragraph(screen.paint(Ink::kRed, "not passed") + ": " + grade.problem, 0, 2);
    for (const std::string& detail : grade.details) screen.paragraph(detail, 2, 4);
  } else if (!grade.passed()) {
    const auto failed =
        std::count_if(grade.rows.begin(), grade.rows.end(), [](const auto& row) { return !row.passed; });
    screen.line(screen.paint(Ink::kRed, "not passed") + ": " + std::to_string(failed) + " of " +
                std::to_string(grade.rows.size()) + " rows differ");
  } else {
    screen.line(screen.paint(Ink::kGreen, "passed") + ": lesson " + std::to_string(session.row.number) + ", " +
                session.row.title);
    const auto all = lesson::lesson_list();
    const auto next = std::find_if(all.begin(), all.end(),
                                   [&](const auto& row) { return !session.progress.lessons[row.slug].passed; });
    screen.line(next == all.end()
                    ? as_typed("That was the last one. The solutions: `ranklab lesson solution N`.")
                    : "One way to write it: `" + session.command("solution") +
                          as_typed("`. Next: `ranklab lesson start " + std::to_string(next->number) + "`."));
    return;
  }
  screen.line("Stuck? `" + session.command("hint") + "`. Checked at every save: `" + session.command("watch") + "`.");
}

int print_grade_json(const LessonSession& session, const lesson::Grade& grade) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const lesson::CheckRow& row : grade.rows)
    rows.push_back({{"what", row.what},
                    {"expected", row.expected},
                    {"measured", row.measured},
                    {"tolerance", row.tolerance},
                    {"passed", row.passed}});
  const nlohmann::ordered_json data = {{"lesson", session.row.slug},
                                       {"passed", grade.passed()},
                                       {"compiled", grade.compiled},
                                       {"compiler_messages", grade.compiler_messages},
                                       {"problem", grade.problem},
                                       {"details", grade.details},
                                       {"rows", rows},
                                       {"picture", grade.picture},
                                       {"recordings", grade.recordings},
                                       {"unrecorded", grade.unrecorded}};
  const int code = exit_code(ErrorKind::kCheckFailed);
  const Error failed(ErrorKind::kCheckFailed,
                     {.where = "lesson check", .what = "the exercise has not passed", .fix = session.command("hint")});
  std::cout << (grade.passed() ? json_result(data) : json_error(failed, data, code));
  return grade.passed() ? 0 : code;
}

}  // namespace

std::string shown(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path relative = std::filesystem::relative(path, error);
  return error || relative.empty() || relative.native().starts_with("..") ? path.string() : relative.string();
}

lesson::Screen lesson_screen() { return lesson::Screen(std::cout, terminal_columns(100), style_for(stdout).on()); }

LessonSession::LessonSession(const LessonRequest& request)
    : screen(lesson_screen()), progress(lesson::Progress::load()), row(meant(request, progress)) {}

void LessonSession::note(const std::function<void()>& change) {
  progress = lesson::Progress::load();
  change();
  progress.save();
}

std::filesystem::path LessonSession::exercise(const LessonRequest& request) {
  if (!request.file.empty()) return std::filesystem::absolute(request.file);
  const std::filesystem::path here = lesson::exercise_path(row);
  if (is_there(here) || state().exercise.empty()) return here;
  return state().exercise;
}

std::string LessonSession::command(const std::string& verb) const {
  return typed_program() + " lesson " + verb + " " + std::to_string(row.number);
}

void require_exercise(const LessonSession& session, const std::filesystem::path& path) {
  RANKLAB_CHECK(is_there(path), ErrorKind::kIo, .where = "lesson check", .what = "there is no exercise to check",
                .got = "no file " + path.string(),
                .want = "your copy of the exercise of lesson " + std::to_string(session.row.number),
                .fix = "run `" + session.command("start") + "`, or name a file with --file");
  const InputFile readable(path.string(), {.where = "lesson check", .fix = "check the path and its permissions"});
}

int check_once(LessonSession& session, const LessonRequest& request) {
  const std::filesystem::path path = session.exercise(request);
  require_exercise(session, path);
  if (!request.json) {
    session.screen.line("Lesson " + std::to_string(session.row.number) + ", " + shown(path));
    std::cout.flush();
  }
  const auto limit = std::chrono::milliseconds(static_cast<int64_t>(request.timeout_s * 1e3));
  // A file named by --file lies in a folder with other files of its owner, so nothing is written next to it.
  const lesson::Grade grade =
      lesson::grade(session.row, path,
                    {.limit = limit,
                     .color = session.screen.color(),
                     .width = session.screen.width(),
                     .recordings = request.file.empty() ? path.parent_path() : std::filesystem::path(),
                     .prints_to_stderr = request.json});
  if (interrupted()) return exit_code(ErrorKind::kInterrupted);
  session.note([&] {
    ++session.state().attempts;
    if (grade.passed()) session.state().passed = true;
    session.progress.current = session.row.number;
  });
  if (request.json) return print_grade_json(session, grade);
  session.screen.line(
      strprintf("%s in %.1f s", grade.compiled ? "compiled" : "compiler stopped", grade.compile_seconds));
  session.screen.line();
  if (!grade.compiler_messages.empty()) session.screen.line(grade.compiler_messages);
  if (!grade.rows.empty()) print_rows(session, grade);
  print_picture(session, grade);
  print_recordings(session, grade);
  print_verdict(session, grade);
  std::cout.flush();
  return grade.passed() ? 0 : exit_code(ErrorKind::kCheckFailed);
}

void note_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // without SA_RESTART, so that waits are interrupted
  ::sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return g_interrupted; }

}  // namespace ranklab
