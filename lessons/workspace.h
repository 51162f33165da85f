// The learner's copies of the exercises: ./ranklab-lessons/NN_slug/exercise.cpp. Nothing of the learner's is ever
// overwritten or removed. Thread rule: one process at a time.
#pragma once
#include <filesystem>

#include "lessons/lesson_list.h"

namespace ranklab::lesson {

// The path of this lesson's copy, in the current folder; absolute.
std::filesystem::path exercise_path(const LessonRow& row);
// Copies the exercise unless there is one; false when there was.
bool copy_exercise(const LessonRow& row, const std::filesystem::path& to);
// Replaces the copy; the learner's file is kept as exercise.cpp.backup-N, whose path is returned (empty: there was
// none).
std::filesystem::path reset_exercise(const LessonRow& row, const std::filesystem::path& to);

}  // namespace ranklab::lesson
