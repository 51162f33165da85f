#include "core/trace/matching.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

namespace ranklab {
namespace {

// Group (and axis), sequence number and, for messages, the two global ranks, the tag, and the index among messages with
// the same sequence number.
using Key = std::array<int64_t, 6>;
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (const int64_t part : key) hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15ULL + (hash >> 29U);
    return hash;
  }
};

int global_of(const std::vector<int>& group, int group_rank) {
  return group_rank >= 0 && static_cast<size_t>(group_rank) < group.size() ? group[static_cast<size_t>(group_rank)]
                                                                           : -1;
}

// Small ids for groups: the same members on the same axis get the same id.
class GroupNumbers {
 public:
  int64_t number(Axis axis, const std::vector<int>& members) {
    return numbers_.try_emplace({axis, members}, static_cast<int64_t>(numbers_.size())).first->second;
  }

 private:
  std::map<std::pair<Axis, std::vector<int>>, int64_t> numbers_;
};

class Matcher {
 public:
  void add(const RankTrace& trace, size_t rank_index) {
    struct Group {
      std::vector<int> members;
      int64_t number = 0;
    };
    std::array<Group, static_cast<size_t>(Axis::kCount)> groups;
    for (size_t axis = 0; axis < groups.size(); ++axis) {
      const std::vector<int>* members = group_of(trace, static_cast<Axis>(axis));
      if (members != nullptr) groups[axis].members = *members;
      groups[axis].number = groups_.number(static_cast<Axis>(axis), groups[axis].members);
    }
    occurrences_.clear();
    for (size_t e = 0; e < trace.events.size(); ++e) {
      const Event& event = trace.events[e];
      if (event.kind != EventKind::kCollective) continue;
      const Group& group = groups[static_cast<size_t>(event.axis)];
      const bool message = event.verb == Verb::kSend || event.verb == Verb::kRecv;
      Key key = {group.number, event.sequence, -1, -1, 0, 0};
      if (message) message_key(trace, event, group.members, key);
      const auto [it, inserted] = index_.try_emplace(key, calls_.size());
      if (inserted) calls_.push_back({group.members, event.sequence, message, {}});
      std::vector<EventRef>& sides = calls_[it->second].sides;
      sides.insert(event.verb == Verb::kSend ? sides.begin() : sides.end(), {rank_index, e});
    }
  }
  void expect(size_t calls) {
    calls_.reserve(calls);
    index_.reserve(calls);
  }
  std::vector<MatchedCall> take() { return std::move(calls_); }

 private:
  void message_key(const RankTrace& trace, const Event& event, const std::vector<int>& members, Key& key) {
    const int peer = global_of(members, event.peer);
    key[2] = event.verb == Verb::kSend ? trace.global_rank : peer;
    key[3] = event.verb == Verb::kSend ? peer : trace.global_rank;
    key[4] = event.tag;
    key[5] = occurrences_[{static_cast<int64_t>(event.verb), static_cast<int64_t>(event.axis), event.peer, event.tag,
                           event.sequence, 0}]++;
  }

  GroupNumbers groups_;
  std::vector<MatchedCall> calls_;
  std::unordered_map<Key, size_t, KeyHash> index_;
  std::unordered_map<Key, int64_t, KeyHash> occurrences_;
};

}  // namespace

const std::vector<int>* group_of(const RankTrace& trace, Axis axis) {
  for (const TraceGroup& group : trace.groups) {
    if (group.axis == axis) return &group.global_ranks;
  }
  return nullptr;
}

std::vector<MatchedCall> match_calls(std::span<const RankTrace> traces) {
  Matcher matcher;
  size_t sides = 0;
  for (const RankTrace& trace : traces) {
    sides += static_cast<size_t>(std::count_if(trace.events.begin(), trace.events.end(), [](const Event& event) {
      return event.kind == EventKind::kCollective;
    }));
  }
  matcher.expect(sides / 2);  // a call has at least two sides
  for (size_t r = 0; r < traces.size(); ++r) matcher.add(traces[r], r);
  return matcher.take();
}

}  // namespace ranklab
