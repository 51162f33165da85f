// State shared by the lesson subcommands: the terminal, the learner's progress, and the selected lesson. Thread rule:
// one thread.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "cli/lesson/lesson_actions.h"
#include "lessons/grade.h"
#include "lessons/lesson_list.h"
#include "lessons/progress.h"
#include "lessons/screen.h"

namespace ranklab {

struct LessonSession {
  explicit LessonSession(const LessonRequest& request);

  lesson::LessonState& state() { return progress.lessons[row.slug]; }
  // Applies a change to the progress file as it is now, not as it was when this command began: while a `watch` runs for
  // hours, the learner may take hints and pass lessons in other terminals.
  void note(const std::function<void()>& change);
  // The learner's copy: the one in this folder, else the one in its last location; or the one of --file.
  std::filesystem::path exercise(const LessonRequest& request);
  // "./ranklab lesson check 1", as it must be typed in this folder.
  std::string command(const std::string& verb) const;

  lesson::Screen screen;
  lesson::Progress progress;
  const lesson::LessonRow& row;
};

lesson::Screen lesson_screen();
// The path relative to this folder if it is inside it.
std::string shown(const std::filesystem::path& path);

// Throws kIo, saying what to do, if there is no exercise or it cannot be read.
void require_exercise(const LessonSession& session, const std::filesystem::path& path);
// Compiles and checks, prints the result, and counts attempts. Throws as require_exercise() does.
int check_once(LessonSession& session, const LessonRequest& request);

// From here on Ctrl-C is recorded instead of ending the process.
void note_interrupts();
bool interrupted();

}  // namespace ranklab
