// The learner's copies of the exercises: ./ranklab-lessons/NN_slug/exercise.cpp. Nothing of the learner's is ever
// overwritten or removed. Thread rule: one process at a time.
#pragma once
#include <filesystem>
#include <vector>

#include "lessons/lesson_list.h"

namespace ranklab::lesson {

// The path of this lesson's copy, in the current folder; absolute.
std::filesystem::path exercise_path(const LessonRow& row);
// Copies the exercise unless there is one; false when there was.
bool copy_exercise(const LessonRow& row, const std::filesystem::path& to);
// The headers that the exercise includes, its own first, where they are: the learner reads them, the check compiles
// with them. Throws kIo.
std::vector<std::filesystem::path> headers_of(const LessonRow& row);
// Writes compile_flags.txt beside the copy, with which clangd finds the headers; replaces only its own.
void write_compile_flags(const LessonRow& row, const std::filesystem::path& exercise);
// Replaces the copy; the learner's file is kept as exercise.cpp.backup-N, whose path is returned (empty: there was
// none).
std::filesystem::path reset_exercise(const LessonRow& row, const std::filesystem::path& to);

}  // namespace ranklab::lesson
