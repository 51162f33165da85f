// Compiles an exercise, runs its lesson's check in a child process, and reports what happened. Thread rule: the caller
// has no other threads (sandbox.h).
#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "lessons/lesson_list.h"

namespace ranklab::lesson {

struct Grade {
  double compile_seconds = 0;
  bool compiled = false;
  std::string compiler_messages;
  std::vector<CheckRow> rows;           // empty if the code did not finish
  std::string picture;                  // what the code did next to what is right, in lines; may be empty
  std::string problem;                  // crash, hang, deadlock, ... in one sentence; empty if the check ran to its end
  std::vector<std::string> details;     // about the problem, one per line
  std::vector<std::string> recordings;  // what the ranks did, as files yours.json.gz and right.json.gz; may be empty
  std::string unrecorded;               // why they could not be written

  bool passed() const;
};

struct GradeOptions {
  std::chrono::milliseconds limit{20'000};  // for the child; a silent rank is reported after a quarter of it
  bool color = false;                       // in the compiler's messages and the picture
  int width = 100;                          // of the picture, in columns
  std::filesystem::path recordings = {};    // folder for traces of what the ranks did; empty: not kept
  bool prints_to_stderr = false;            // what the code prints, because stdout is read by a program
};

Grade grade(const LessonRow& row, const std::filesystem::path& exercise, const GradeOptions& options);

}  // namespace ranklab::lesson
