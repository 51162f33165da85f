// The check of an answer, made once for all tests that ask about the same one: its verdict, its picture of 80 columns
// and its recordings. Compiling and running answers is most of what these tests cost.
#pragma once
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "tests/lessons/exercise_file.h"

namespace ranklab::lesson {

class GradedAnswers {
 public:
  // As a learner's compiler meets a file that is `given`; else with headers precompiled.
  const Grade& of(const LessonRow& row, const std::string& text, bool given) {
    const std::tuple key(row.slug, text, given);
    if (const auto known = grades_.find(key); known != grades_.end()) return known->second;
    const std::filesystem::path recordings = folder_ / std::to_string(grades_.size());
    std::filesystem::create_directories(recordings);
    const ExerciseFile file(text);
    std::optional<PrecompiledHeaders> precompiled;
    if (!given) precompiled.emplace();
    // The machine may be busy.
    Grade got = grade(row, file.path(), {.limit = std::chrono::minutes(2), .width = 80, .recordings = recordings});
    return grades_.emplace(key, std::move(got)).first->second;
  }
  ~GradedAnswers() {
    if (::getpid() == owner_) std::filesystem::remove_all(folder_);  // not at the end of a child that checks an answer
  }

 private:
  pid_t owner_ = ::getpid();
  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("ranklab_graded_" + std::to_string(owner_));
  std::map<std::tuple<std::string, std::string, bool>, Grade> grades_;
};

inline GradedAnswers& graded_answers() {
  static GradedAnswers answers;
  return answers;
}
inline const Grade& graded(const LessonRow& row, const std::string& text) {
  return graded_answers().of(row, text, false);
}
inline const Grade& graded_file(const LessonRow& row, const std::string& name) {
  return graded_answers().of(row, read_text(row.folder() / name), true);
}

}  // namespace ranklab::lesson
