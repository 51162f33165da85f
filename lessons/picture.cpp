#include "lessons/picture.h"

#include <algorithm>
#include <utility>

#include "core/trace/chrome_writer.h"

namespace ranklab::lesson {

void Picture::record(const std::string& whose, std::vector<RankTrace> ranks) {
  std::erase_if(recordings_, [&](const Recording& one) { return one.whose == whose; });
  const bool empty = std::ranges::all_of(ranks, [](const RankTrace& rank) { return rank.events.empty(); });
  if (!empty) recordings_.push_back({whose, std::move(ranks)});
}

std::vector<std::filesystem::path> Picture::write_recordings(const std::filesystem::path& folder) const {
  std::vector<std::filesystem::path> paths;
  for (const Recording& one : recordings_) {
    paths.push_back(folder / (one.whose + ".json.gz"));
    write_chrome_trace(paths.back().string(), one.ranks, {.title = one.whose});
  }
  return paths;
}

}  // namespace ranklab::lesson
