// The learner's copies of the exercises: ./ranklab-lessons/NN_slug/exercise.cpp. No file of the learner is ever
// overwritten or removed. Thread rule: one process at a time.
#pragma once
#include <filesystem>
#include <vector>

#include "lessons/lesson_list.h"

namespace ranklab::lesson {

// The absolute path of this lesson's copy in the current folder.
std::filesystem::path exercise_path(const LessonRow& row);
// Copies the exercise unless there is a copy. RETURNS: false if there was one.
bool copy_exercise(const LessonRow& row, const std::filesystem::path& to);
// The headers that the exercise includes, its own first, at their original places: the learner reads them, and the
// check compiles with them. Throws kIo.
std::vector<std::filesystem::path> headers_of(const LessonRow& row);
// Writes compile_flags.txt next to the copy, with which clangd finds the headers; replaces only a file that it wrote
// itself.
void write_compile_flags(const LessonRow& row, const std::filesystem::path& exercise);
// Replaces the copy; the learner's file is kept as exercise.cpp.backup-N. RETURNS: its path (empty: there was none).
std::filesystem::path reset_exercise(const LessonRow& row, const std::filesystem::path& to);

}  // namespace ranklab::lesson
