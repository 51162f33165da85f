// The learner's progress, stored in one small JSON file: $RANKLAB_STATE_DIR, else $XDG_STATE_HOME/ranklab, else
// ~/.local/state/ranklab. The file is written under a temporary name and renamed, so it is always intact. Thread rule:
// one process at a time; the last writer wins.
#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace ranklab::lesson {

struct LessonState {
  std::string exercise;    // path of the learner's copy
  std::string prediction;  // as typed
  int hints = 0;           // number shown so far
  int attempts = 0;        // number of checks
  bool passed = false;
  bool solution_seen = false;  // before the exercise was passed
};

struct Progress {
  int current = 0;
  std::map<std::string, LessonState> lessons;  // by slug

  static std::filesystem::path file();
  static Progress load();  // empty if there is none; throws kBadFile if the file is invalid
  void save() const;
};

}  // namespace ranklab::lesson
