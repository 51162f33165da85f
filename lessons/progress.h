// The learner's progress, kept in one small JSON file: $RANKLAB_STATE_DIR, else $XDG_STATE_HOME/ranklab, else
// ~/.local/state/ranklab. Written to a temporary name and renamed, so it is always intact. Thread rule: one process at
// a time; the last writer wins.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace ranklab::lesson {

struct LessonState {
  std::string exercise;    // path of the learner's copy
  std::string prediction;  // as typed
  int hints = 0;           // shown so far
  int attempts = 0;        // number of checks
  bool passed = false;
  bool solution_seen = false;  // before the exercise was passed
};

struct Progress {
  int current = 0;
  std::map<std::string, LessonState> lessons;  // by slug

  static std::filesystem::path file();
  static Progress load();  // empty when there is none; throws kBadFile when the file is invalid
  void save() const;
};

}  // namespace ranklab::lesson
