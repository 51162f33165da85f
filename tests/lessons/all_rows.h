// Every lesson, as the parameters of a suite.
#pragma once
#include <vector>

#include "lessons/lesson_list.h"

namespace ranklab::lesson {

inline std::vector<const LessonRow*> all_rows() {
  std::vector<const LessonRow*> rows;
  for (const LessonRow& row : lesson_list()) rows.push_back(&row);
  return rows;
}

}  // namespace ranklab::lesson
