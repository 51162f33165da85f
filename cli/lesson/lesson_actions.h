// The actions of `ranklab lesson ...`, one function per subcommand. Each returns the exit code: 0, 4 if a check fails,
// 130 after Ctrl-C. Thread rule: the main thread, with no other threads (an exercise is checked in a fork).
#pragma once
#include <string>

namespace ranklab {

struct LessonRequest {
  std::string lesson;   // number or slug; empty: the current one
  std::string predict;  // as typed; "": nothing
  std::string file;     // check this file instead of the learner's copy
  double timeout_s = 20;
  bool force = false, json = false;
  int hunt = 0;              // for lesson hunt; 0: all hunts
  std::string module, axis;  // the answer
  bool hint = false;
};

// Throws kInvalidArgument for what is no number.
void check_prediction(const std::string& text);

int lesson_list_all(const LessonRequest& request);
int lesson_start(const LessonRequest& request);
int lesson_run(const LessonRequest& request);
int lesson_check(const LessonRequest& request);
int lesson_hint(const LessonRequest& request);
int lesson_solution(const LessonRequest& request);
int lesson_reset(const LessonRequest& request);
int lesson_progress(const LessonRequest& request);
int lesson_watch(const LessonRequest& request);
int lesson_hunt(const LessonRequest& request);

}  // namespace ranklab
