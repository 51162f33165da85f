// A learner's file in a folder of its own, gone at the end.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lessons/grade.h"
#include "tests/lessons/precompiled_headers.h"

namespace ranklab::lesson {

class ExerciseFile {
 public:
  explicit ExerciseFile(const std::string& text)
      : folder_(std::filesystem::path(::testing::TempDir()) / ("ranklab_exercise_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(path()) << text;
  }
  ~ExerciseFile() { std::filesystem::remove_all(folder_); }
  ExerciseFile(const ExerciseFile&) = delete;
  ExerciseFile& operator=(const ExerciseFile&) = delete;
  std::filesystem::path path() const { return folder_ / "exercise.cpp"; }

 private:
  std::filesystem::path folder_;
};

inline Grade grade_text(const std::string& lesson, const std::string& text,
                        std::chrono::milliseconds limit = std::chrono::milliseconds(20'000)) {
  const ExerciseFile file(text);
  const PrecompiledHeaders precompiled;
  return grade(find_lesson(lesson), file.path(), {.limit = limit});
}

// The solution with one piece of text replaced.
inline std::string changed_solution(const std::string& lesson, const std::string& from, const std::string& to) {
  std::string text = read_text(find_lesson(lesson).folder() / "solution.cpp");
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "the solution has no " << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace ranklab::lesson
