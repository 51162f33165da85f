// The canvas of a check: a screen, and recordings of what its ranks did in the learner's code and in the correct code,
// as traces that the visualizer's stage plays. Thread rule: one thread.
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

  // `whose`: "yours" or "right"; of two recordings with the same name the later one is kept. Runs without an event are
  // left out.
  void record(const std::string& whose, std::vector<RankTrace> ranks);

  // Writes one trace for each recording, WHOSE.json.gz, to a folder. RETURNS: their paths. Throws kIo.
  std::vector<std::filesystem::path> write_recordings(const std::filesystem::path& folder) const;

 private:
  struct Recording {
    std::string whose;
    std::vector<RankTrace> ranks;
  };
  std::vector<Recording> recordings_;
};

}  // namespace ranklab::lesson
