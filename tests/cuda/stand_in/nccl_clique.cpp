#include "tests/cuda/stand_in/nccl_clique.h"

#include <algorithm>
#include <cstring>

namespace ranklab::stand_in {

Outcome Clique::join(int rank, int device) {
  std::unique_lock lock(mutex_);
  if (rank < 0 || rank >= size() || member(rank).device) return {ncclInvalidUsage, "a rank that is not free"};
  member(rank).device = device;
  changed_.notify_all();
  changed_.wait(lock, [this] {
    return std::all_of(members_.begin(), members_.end(), [](const Member& each) { return each.device.has_value(); });
  });
  for (int other = 0; other < size(); ++other) {
    if (other == rank || member(other).device != device) continue;
    return {ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " +
                                  std::to_string(other) + " both on CUDA device " + std::to_string(device)};
  }
  return {};
}

std::set<Clique::Direction> Clique::new_directions(int rank, const std::vector<Operation>& operations) const {
  std::set<Direction> out;
  for (const Operation& each : operations) {
    if (!each.is_message() || each.peer == rank) continue;
    const Direction direction = each.kind == Kind::kSend ? Direction{rank, each.peer} : Direction{each.peer, rank};
    if (!connected_.contains(direction)) out.insert(direction);
  }
  return out;
}

bool Clique::all_at_first_collective() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& each) { return each.at_first_collective; });
}

// Connects this member with every other whose host is in a launch that connects the two.
void Clique::connect(int rank) {
  for (int peer = 0; peer < size(); ++peer) {
    const auto between = [&](const std::set<Direction>& directions) {
      std::set<Direction> out;
      for (const Direction& each : directions)
        if (each == Direction{rank, peer} || each == Direction{peer, rank}) out.insert(each);
      return out;
    };
    const std::set<Direction> mine = between(member(rank).connecting), theirs = between(member(peer).connecting);
    if (peer == rank || mine.empty() || theirs.empty()) continue;
    if (mine != theirs) {
      const std::string words = "Message truncated : members " + std::to_string(rank) + " and " + std::to_string(peer) +
                                " connect other directions";
      member(rank).failed_to_connect = member(peer).failed_to_connect = words;
      continue;
    }
    for (const Direction& each : mine) {
      connected_.insert(each);
      member(rank).connecting.erase(each);
      member(peer).connecting.erase(each);
    }
  }
  changed_.notify_all();
}

Outcome Clique::prepare(int rank, const std::vector<Operation>& operations, bool in_graph) {
  std::unique_lock lock(mutex_);
  Member& me = member(rank);
  const bool collective =
      std::any_of(operations.begin(), operations.end(), [](const Operation& each) { return !each.is_message(); });
  if (collective) {
    me.at_first_collective = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return me.aborted || all_at_first_collective(); });
  }
  me.connecting = new_directions(rank, operations);
  connect(rank);
  changed_.wait(lock, [&] { return me.aborted || me.connecting.empty() || !me.failed_to_connect.empty(); });
  me.connecting.clear();
  if (!me.failed_to_connect.empty()) return {ncclInternalError, me.failed_to_connect};
  if (me.aborted) return {ncclInternalError, "aborted while it connected"};
  if (!in_graph) ++me.launched;
  return {};
}

void Clique::meet(Messages& messages) {
  auto& [sends, receives] = messages;
  while (!sends.empty() && !receives.empty()) {
    const Operation &send = *sends.front().operation, &receive = *receives.front().operation;
    if (send.bytes() != receive.bytes()) return;  // for good
    std::memcpy(receive.to, send.from, send.bytes());
    --sends.front().kernel->unmet;
    --receives.front().kernel->unmet;
    sends.pop_front();
    receives.pop_front();
  }
}

void Clique::meet(std::vector<Posted>& collective) {
  std::vector<const Operation*> all;
  for (const Posted& each : collective) {
    if (each.operation == nullptr || !each.operation->matches(*collective.front().operation)) return;
    all.push_back(each.operation);
  }
  perform(all);
  for (const Posted& each : collective) --each.kernel->unmet;
  collective.clear();
}

void Clique::post(int rank, const Operation& operation, Kernel& kernel) {
  if (operation.is_message()) {
    const bool send = operation.kind == Kind::kSend;
    Messages& messages = messages_[send ? Direction{rank, operation.peer} : Direction{operation.peer, rank}];
    (send ? messages.sends : messages.receives).push_back({&operation, &kernel});
    return meet(messages);
  }
  const int64_t number = member(rank).collectives++;
  std::vector<Posted>& collective = collectives_[number];
  if (collective.empty()) collective.resize(members_.size(), {nullptr, nullptr});
  collective[static_cast<size_t>(rank)] = {&operation, &kernel};
  meet(collective);
  if (collective.empty()) collectives_.erase(number);
}

// Nothing of an aborted kernel may be touched any more.
void Clique::withdraw(const Kernel& kernel) {
  const auto gone = [&](const Posted& each) { return each.kernel == &kernel; };
  for (auto& [direction, messages] : messages_) {
    std::erase_if(messages.sends, gone);
    std::erase_if(messages.receives, gone);
  }
  for (auto& [number, collective] : collectives_)
    std::replace_if(collective.begin(), collective.end(), gone, Posted{nullptr, nullptr});
}

void Clique::run(int rank, const std::vector<Operation>& operations, bool in_graph) {
  std::unique_lock lock(mutex_);
  Member& me = member(rank);
  Kernel kernel{operations.size()};
  if (!me.aborted) {
    for (const Operation& each : operations) post(rank, each, kernel);
    changed_.notify_all();
    changed_.wait(lock, [&] { return me.aborted || kernel.unmet == 0; });
    if (kernel.unmet > 0) withdraw(kernel);
  }
  if (!in_graph) ++me.ran;
  changed_.notify_all();
}

void Clique::finish(int rank) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return member(rank).ran == member(rank).launched; });
}

void Clique::abort(int rank) {
  const std::lock_guard lock(mutex_);
  member(rank).aborted = true;
  changed_.notify_all();
}

}  // namespace ranklab::stand_in
