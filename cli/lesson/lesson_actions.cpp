#include "cli/lesson/lesson_actions.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "cli/common/typed_program.h"
#include "cli/lesson/lesson_session.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "lessons/markdown.h"
#include "lessons/workspace.h"

namespace ranklab {

using lesson::Ink;

namespace {

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return {};
  return value;
}

lesson::LessonText lesson_text(const LessonSession& session) {
  return lesson::split_lesson_text(as_typed(lesson::read_text(session.row.folder() / "README.md")));
}

// Asks for a prediction on a terminal; elsewhere --predict gives it.
void take_prediction(LessonSession& session, const LessonRequest& request) {
  const std::string prediction = request.predict.empty() ? session.state().prediction : request.predict;
  if (!request.predict.empty()) session.note([&] { session.state().prediction = prediction; });
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (!prediction.empty() || !terminal) return;
  const lesson::Question question = session.row.make()->question();
  session.screen.heading("Predict first");
  session.screen.paragraph(question.text);
  session.screen.line();
  std::string line;
  do {
    std::cout << "  Your answer" << (question.unit.empty() ? "" : " (in " + question.unit + ")")
              << ", a number, or Enter to skip: " << std::flush;
  } while (std::getline(std::cin, line) && !line.empty() && !number_of(line));
  session.note([&] { session.state().prediction = line; });
}

// Prints the question if nobody can be asked.
void print_question(LessonSession& session) {
  session.screen.heading("Predict first");
  session.screen.paragraph(session.row.make()->question().text);
  session.screen.line();
  session.screen.line("  Your answer: `" + session.command("run") + " --predict X`");
}

void compare_prediction(LessonSession& session, double measured) {
  const lesson::Question question = session.row.make()->question();
  const std::string unit = question.unit.empty() ? "" : " " + question.unit;
  const std::string& typed = session.state().prediction;
  session.screen.heading("Predicted and measured");
  session.screen.paragraph(question.text);
  session.screen.line();
  session.screen.line("  predicted  " + (typed.empty() ? "nothing (next time: --predict X)" : typed + unit));
  const bool right = std::abs(number_of(typed).value_or(HUGE_VAL) - measured) <= question.tolerance;
  session.screen.line("  measured   " + strprintf("%.4g", measured) + unit +
                      (typed.empty() ? ""
                       : right       ? "   " + session.screen.paint(Ink::kGreen, "right")
                                     : "   " + session.screen.paint(Ink::kYellow, "not what you expected: why?")));
}

// Shows the learner's file, and the headers with the functions that it may call.
void show_files(LessonSession& session, const std::filesystem::path& path, bool fresh) {
  session.screen.heading("Your turn");
  std::vector<lesson::Cells> rows = {{"", ""}};
  rows.push_back({session.screen.paint(Ink::kBold, shown(path)),
                  fresh ? "your copy of the exercise: write here" : "already yours, left unchanged"});
  for (const std::filesystem::path& header : lesson::headers_of(session.row))
    rows.push_back(
        {shown(header), header.filename() == "exercise.h" ? "what you are to write, exactly" : "what you have"});
  session.screen.table(rows);
  session.screen.paragraph("Editors with clangd find the headers by the compile_flags.txt beside your file.");
  session.screen.line();
}

// `start` without a lesson selects the current one, or the next one if that is passed.
void move_on(LessonRequest& request) {
  if (!request.lesson.empty()) return;
  lesson::Progress progress = lesson::Progress::load();
  for (const auto& row : lesson::lesson_list()) {
    if (row.number < progress.current || progress.lessons[row.slug].passed) continue;
    request.lesson = row.slug;
    return;
  }
}

}  // namespace

void check_prediction(const std::string& text) {
  RANKLAB_CHECK(number_of(text), ErrorKind::kInvalidArgument, .where = "--predict", .what = "a prediction is a number",
                .got = quote(text), .want = "for example 2.5",
                .fix = text.empty() ? "leave --predict out to predict nothing" : "leave the unit out");
}

int lesson_start(const LessonRequest& given) {
  LessonRequest request = given;
  move_on(request);
  LessonSession session(request);
  lesson::show_markdown(session.screen, lesson_text(session).before);
  take_prediction(session, request);
  if (session.state().prediction.empty() && isatty(STDIN_FILENO) == 0) print_question(session);
  const std::filesystem::path path = lesson::exercise_path(session.row);
  const bool fresh = lesson::copy_exercise(session.row, path);
  session.note([&] {
    session.state().exercise = path.string();
    session.progress.current = session.row.number;
  });
  lesson::write_compile_flags(session.row, path);
  show_files(session, path, fresh);
  session.screen.table({{"", ""},
                        {session.command("run"), "the experiment"},
                        {session.command("check"), "compile and check your file"},
                        {session.command("watch"), "the same at every save"},
                        {session.command("hint"), "a hint, one at a time"}});
  return 0;
}

int lesson_run(const LessonRequest& request) {
  LessonSession session(request);
  take_prediction(session, request);
  compare_prediction(session, session.row.make()->run(session.screen));
  session.screen.line();
  lesson::show_markdown(session.screen, lesson_text(session).after);
  return 0;
}

int lesson_check(const LessonRequest& request) {
  note_interrupts();
  LessonSession session(request);
  return check_once(session, request);
}

int lesson_hint(const LessonRequest& request) {
  LessonSession session(request);
  const auto hints = lesson::sections_of(as_typed(lesson::read_text(session.row.folder() / "hints.md")));
  const int count = static_cast<int>(hints.size());
  int shown = 0;
  bool more = false;
  session.note([&] {
    int& taken = session.state().hints;
    taken = std::clamp(taken, 0, count);  // the file may be from another version, or edited by hand
    more = taken < count;
    shown = more ? ++taken : taken;
  });
  session.screen.line(session.screen.paint(Ink::kBold, strprintf("Hint %d of %d", shown, count)));
  session.screen.line();
  lesson::show_markdown(session.screen, hints[static_cast<size_t>(shown - 1)]);
  session.screen.line();
  session.screen.line(shown < count ? "For the next one, run this again: `" + session.command("hint") +
                                          "` (the number is the lesson's)."
                      : more ? "That was the last one."
                             : "There are no more. `" + session.command("solution") + " --force` gives it away.");
  return 0;
}

int lesson_solution(const LessonRequest& request) {
  LessonSession session(request);
  const bool passed = session.state().passed;
  RANKLAB_CHECK(passed || request.force, ErrorKind::kInvalidArgument, .where = "lesson solution",
                .what = "the solution is shown once the exercise has passed its check",
                .got = "lesson " + std::to_string(session.row.number) + " not passed",
                .want = "`" + session.command("check") + "` passing",
                .fix = "take a hint (`" + session.command("hint") + "`), or add --force");
  if (!passed) session.note([&] { session.state().solution_seen = true; });
  std::cout << lesson::read_text(session.row.folder() / "solution.cpp");
  return 0;
}

int lesson_reset(const LessonRequest& request) {
  LessonSession session(request);
  const std::filesystem::path path = session.exercise(request);
  const std::filesystem::path backup = lesson::reset_exercise(session.row, path);
  session.note([&] {
    session.state().exercise = path.string();
    session.state().hints = 0;
  });
  session.screen.line("The exercise is reset: " + path.string());
  if (!backup.empty()) session.screen.line("Your file is kept:     " + backup.string());
  return 0;
}

}  // namespace ranklab
