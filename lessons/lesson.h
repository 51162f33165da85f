// A lesson: a question, an experiment on simulated ranks, and the check of one exercise, which is compared with an
// unsharded reference. A lesson is one folder, NN_slug/{README.md, hints.md, exercise.h, exercise.cpp, solution.cpp,
// lesson.cpp}, and one row in lesson_list.cpp. README.md is the text that the program shows; every number in bold in it
// is one of figures(). Thread rule: one thread; a lesson starts its own ranks.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace ranklab::lesson {

class Picture;
class Screen;
class ExerciseLibrary;

struct Figure {
  std::string name;
  std::string value;  // as the README prints it
};

// A prediction before the experiment. The answer is not stored, because run() measures it.
struct Question {
  std::string text;
  std::string unit;         // printed after numbers
  double tolerance = 1e-9;  // accepted deviation
};

// One line of a check's table.
struct CheckRow {
  std::string what;
  std::string expected;
  std::string measured;
  std::string tolerance;  // "exact", "1e-12 relative"
  bool passed = false;
};
inline CheckRow exact_row(const std::string& what, double expected, double got) {
  return {what, strprintf("%.6g", expected), strprintf("%.6g", got), "exact", got == expected};
}

class Lesson {
 public:
  virtual ~Lesson() = default;
  virtual std::vector<Figure> figures() const = 0;
  virtual Question question() const = 0;
  // Prints the experiment and its picture. RETURNS: the measured answer to question().
  virtual double run(Screen& screen) const = 0;
  // Runs the learner's code, and draws on `picture` what it did next to what is right, in at most 30 lines; if ranks
  // ran, it also records what they did. Errors of these ranks (deadlock, mismatch, hang) are thrown as ranklab::Error;
  // what was drawn until then is shown.
  virtual std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const = 0;
};
using LessonPtr = std::unique_ptr<Lesson>;

}  // namespace ranklab::lesson
