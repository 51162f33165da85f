#include "core/pipeline/csv_messages.h"

#include <map>
#include <tuple>

#include "core/base/text.h"

namespace ranklab {
namespace {

using Key = std::tuple<bool, int, int>;  // forward, sending stage, microbatch

struct Sides {
  const MessageCell* send = nullptr;
  const MessageCell* receive = nullptr;
};

class Matcher {
 public:
  Matcher(const Schedule& schedule, const std::vector<MessageCell>& cells, size_t most)
      : schedule_(schedule), cells_(cells), most_(most) {}

  std::vector<std::string> run() {
    place_work();
    for (const MessageCell& cell : cells_) note(cell);
    for (const auto& [key, sides] : messages_) check(key, sides);
    if (!cells_.empty() && problems_.empty()) check_all_there();
    return std::move(problems_);
  }

 private:
  void problem(std::string text) {
    if (problems_.size() < most_) problems_.push_back(std::move(text));
  }
  bool exists(int stage) const { return stage >= 0 && stage < schedule_.num_stages(); }
  static std::string cell_name(bool send, bool forward, int stage, int microbatch) {
    return std::to_string(stage) + (send ? "SEND_" : "RECV_") + (forward ? "F" : "B") + std::to_string(microbatch);
  }

  // Finds, for each stage and microbatch, the position of the action in its rank's list.
  void place_work() {
    for (const auto& actions : schedule_.ranks) {
      for (size_t i = 0; i < actions.size(); ++i) {
        const Action& a = actions[i];
        const auto at = static_cast<int>(i);
        if (a.has_forward()) work_.emplace(Key{true, a.stage, a.microbatch}, at);
        if (a.has_input_grad()) work_.emplace(Key{false, a.backward_stage(), a.backward_microbatch()}, at);
      }
    }
  }

  void note(const MessageCell& cell) {
    if (!exists(cell.stage)) return problem(cell.place + ": no rank computes stage " + std::to_string(cell.stage));
    const int holder = schedule_.rank(cell.stage);
    if (holder != cell.rank) return problem(cell.place + strprintf(": stage %d lies on rank %d", cell.stage, holder));
    const int step = cell.forward ? 1 : -1;
    const int sender = cell.send ? cell.stage : cell.stage - step;
    if (!exists(sender) || !exists(sender + step))
      return problem(cell.place + strprintf(": there is no stage %d", exists(sender) ? sender + step : sender));
    Sides& sides = messages_[{cell.forward, sender, cell.microbatch}];
    const MessageCell*& side = cell.send ? sides.send : sides.receive;
    if (side != nullptr) return problem(cell.place + ": twice, first in " + side->place);
    side = &cell;
    check_order(cell);
  }

  void check_order(const MessageCell& cell) {
    const auto work = work_.find({cell.forward, cell.stage, cell.microbatch});
    const std::string what = std::to_string(cell.stage) + (cell.forward ? "F" : "B") + std::to_string(cell.microbatch);
    if (work == work_.end()) return problem(cell.place + ": no rank computes " + what);
    if (cell.send && work->second >= cell.position) problem(cell.place + ": sent before " + what + " has made it");
    if (!cell.send && work->second < cell.position) problem(cell.place + ": received after " + what + " needed it");
  }

  void check(const Key& key, const Sides& sides) {
    const auto [forward, sender, microbatch] = key;
    const int receiver = forward ? sender + 1 : sender - 1;
    if (sides.receive == nullptr)
      problem(sides.send->place + ": nobody receives it; want " + cell_name(false, forward, receiver, microbatch) +
              " on rank " + std::to_string(schedule_.rank(receiver)));
    if (sides.send == nullptr)
      problem(sides.receive->place + ": nobody sends it; want " + cell_name(true, forward, sender, microbatch) +
              " on rank " + std::to_string(schedule_.rank(sender)));
  }

  void check_all_there() {
    for (const auto& [work, position] : work_) {
      const auto [forward, stage, microbatch] = work;
      const int receiver = forward ? stage + 1 : stage - 1;
      if (!exists(receiver) || schedule_.rank(receiver) == schedule_.rank(stage)) continue;
      if (!messages_.contains(work))
        problem(strprintf("rank %d never sends %s to rank %d", schedule_.rank(stage),
                          cell_name(true, forward, stage, microbatch).c_str(), schedule_.rank(receiver)));
    }
  }

  const Schedule& schedule_;
  const std::vector<MessageCell>& cells_;
  size_t most_;
  std::map<Key, int> work_;
  std::map<Key, Sides> messages_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> message_problems(const Schedule& schedule, const std::vector<MessageCell>& cells,
                                          size_t most) {
  return cells.empty() ? std::vector<std::string>{} : Matcher(schedule, cells, most).run();
}

}  // namespace ranklab
