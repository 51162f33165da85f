// All lessons, in order, and their folders. Thread rule: pure.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "lessons/lesson.h"

namespace ranklab::lesson {

struct LessonRow {
  int number;
  std::string slug;   // "all_reduce"
  std::string title;  // the question in a few words
  LessonPtr (*make)();

  std::string folder_name() const;       // "01_all_reduce"
  std::filesystem::path folder() const;  // with README.md, hints.md, exercise.h, exercise.cpp, solution.cpp
};

std::span<const LessonRow> lesson_list();
// Finds a lesson by number or slug. Throws kInvalidArgument with the nearest name.
const LessonRow& find_lesson(const std::string& number_or_slug);

// RANKLAB_LESSON_DIR, else share/ranklab/lessons next to the installed program, else the source tree.
std::filesystem::path lesson_root();
// Reads the whole file. Throws kIo.
std::string read_text(const std::filesystem::path& path);

}  // namespace ranklab::lesson
