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
  // Changes the progress file as it is now, not as it was when this command began: beside a `watch`, which goes on for
  // hours, hints are taken and lessons passed in other terminals.
  void note(const std::function<void()>& change);
  // The learner's copy: in this folder, else its last location; or --file.
  std::filesystem::path exercise(const LessonRequest& request);
  // "./ranklab lesson check 1", as it must be typed in this folder.
  std::string command(const std::string& verb) const;

  lesson::Screen screen;
  lesson::Progress progress;
  const lesson::LessonRow& row;
};

lesson::Screen lesson_screen();
// Relative to this folder where it is in it.
std::string shown(const std::filesystem::path& path);

// Throws kIo, with what to do, where there is no exercise or it may not be read.
void require_exercise(const LessonSession& session, const std::filesystem::path& path);
// Compiles and checks, prints the result, and counts attempts. Throws as require_exercise() does.
int check_once(LessonSession& session, const LessonRequest& request);

// From here on Ctrl-C is recorded instead of ending the process.
void note_interrupts();
bool interrupted();

}  // namespace ranklab
