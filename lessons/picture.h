// What a check draws on: a screen, and what its ranks did in the learner's code and in the right one, as traces that
// the visualizer's stage plays. Thread rule: one thread.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/trace/event.h"
#include "lessons/screen.h"

namespace ranklab::lesson {

class Picture : public Screen {
 public:
  using Screen::Screen;

  // `whose`: "yours" or "right"; of two with the same name the later one stays. Runs without an event are left out.
  void record(const std::string& whose, std::vector<RankTrace> ranks);

  // Writes a trace for each, WHOSE.json.gz, into a folder. RETURNS: their paths. Throws kIo.
  std::vector<std::filesystem::path> write_recordings(const std::filesystem::path& folder) const;

 private:
  struct Recording {
    std::string whose;
    std::vector<RankTrace> ranks;
  };
  std::vector<Recording> recordings_;
};

}  // namespace ranklab::lesson
