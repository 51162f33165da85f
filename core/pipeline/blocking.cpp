#include "core/pipeline/blocking.h"

#include <algorithm>
#include <vector>

#include "core/base/text.h"

namespace ranklab {
namespace {

// A message, identified by its content: the output of `stage` (forward) or the gradient of its input (backward).
struct Message {
  bool forward = false;
  int stage = 0;  // the stage that produces it
  int microbatch = 0;
};

struct Post {
  Message message;
  int peer = -1;
};

class Blocking {
 public:
  explicit Blocking(const Schedule& schedule)
      : schedule_(schedule),
        at_(schedule.ranks.size(), 0),
        sides_(2 * schedule.rank_of_stage.size() * static_cast<size_t>(schedule.num_microbatches), 0) {
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) batches_.push_back(batches_of(rank));
  }

  std::string run() {
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) post(rank);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
        while (!finished(rank) && unmet(rank) == nullptr) {
          ++at_[static_cast<size_t>(rank)];
          post(rank);
          moved = true;
        }
      }
    }
    for (int rank = 0; rank < schedule_.num_ranks(); ++rank) {
      if (!finished(rank)) return cycle_from(rank);
    }
    return "";
  }

 private:
  // batches[k] comes before action k; the last one after all actions.
  std::vector<std::vector<Post>> batches_of(int rank) const {
    const auto& actions = schedule_.ranks[static_cast<size_t>(rank)];
    std::vector<std::vector<Post>> batches(actions.size() + 1);
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action& a = actions[i];
      const int back = a.backward_stage(), microbatch = a.backward_microbatch();
      const auto add = [&](size_t batch, Message message, int other_stage) {
        const int peer = schedule_.rank(other_stage);
        if (peer != rank) batches[batch].push_back({message, peer});
      };
      if (a.has_forward() && !schedule_.is_first(a.stage)) add(i, {true, a.stage - 1, a.microbatch}, a.stage - 1);
      if (a.has_forward() && !schedule_.is_last(a.stage)) add(i + 1, {true, a.stage, a.microbatch}, a.stage + 1);
      if (a.has_input_grad() && !schedule_.is_last(back)) add(i, {false, back + 1, microbatch}, back + 1);
      if (a.has_input_grad() && !schedule_.is_first(back)) add(i + 1, {false, back, microbatch}, back - 1);
    }
    return batches;
  }
  size_t place(const Message& m) const {
    const size_t stage = 2 * static_cast<size_t>(m.stage) + (m.forward ? 1 : 0);
    return stage * static_cast<size_t>(schedule_.num_microbatches) + static_cast<size_t>(m.microbatch);
  }
  const std::vector<Post>& batch(int rank) const {
    return batches_[static_cast<size_t>(rank)][at_[static_cast<size_t>(rank)]];
  }
  bool finished(int rank) const { return at_[static_cast<size_t>(rank)] == batches_[static_cast<size_t>(rank)].size(); }
  void post(int rank) {
    if (finished(rank)) return;
    for (const Post& one : batch(rank)) ++sides_[place(one.message)];
  }
  const Post* unmet(int rank) const {
    for (const Post& one : batch(rank)) {
      if (sides_[place(one.message)] < 2) return &one;
    }
    return nullptr;
  }
  std::string cycle_from(int rank) const {
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), rank) == path.end()) {
      path.push_back(rank);
      rank = unmet(rank)->peer;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), rank));
    std::vector<std::string> lines;
    for (const int r : path) {
      const auto& [message, peer] = *unmet(r);
      const auto& [is_forward, stage, microbatch] = message;
      const bool sends = schedule_.rank(stage) == r;
      lines.push_back(strprintf("rank %d %s rank %d with the %s of %d%s%d", r, sends ? "waits to reach" : "waits for",
                                peer, is_forward ? "output" : "gradient", stage, is_forward ? "F" : "B", microbatch));
    }
    return join(lines, "; ");
  }

  const Schedule& schedule_;
  std::vector<size_t> at_;
  std::vector<std::vector<std::vector<Post>>> batches_;
  std::vector<uint8_t> sides_;  // for each message: how many of its two ranks have posted it
};

}  // namespace

std::string find_blocking_cycle(const Schedule& schedule) { return Blocking(schedule).run(); }

}  // namespace ranklab
