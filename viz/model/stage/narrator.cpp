// Writes the narrator's lines. Ranks that do the same at the same moment share a line.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/text.h"
#include "viz/model/stage/parts.h"
#include "viz/model/stage/words.h"
#include "viz/model/store/time_text.h"

namespace ranklab::viz {
namespace {

constexpr size_t kMostLines = 3000;
// Calls and waits shorter than 1/kShortest of the window occur in every layer; nobody could follow them.
constexpr int64_t kShortest = 300;

// "runs" for one room, "run" for several.
struct Verbs {
  const char* one;
  const char* several;
};
constexpr Verbs kRuns{"runs", "run"}, kWaits{"waits", "wait"}, kGathers{"gathers", "gather"}, kFrees{"frees", "free"},
    kSums{"has", "have"};

std::string action_words(const StageScript& script, const StageAction& action) {
  const std::string& text = script.text(action.text);
  if (action.microbatch < 0) return text;
  const std::string of = ": " + std::string(name(action.paint)) + " of microbatch " + std::to_string(action.microbatch);
  return text + of;
}

class Narrator {
 public:
  Narrator(const TraceStore& store, StageScript& script)
      : store_(store), script_(script), shortest_ns_(script.window.range.length_ns() / kShortest) {}

  void tell() {
    for (size_t i = 0; i < script_.rooms.size(); ++i) {
      const int room = static_cast<int>(i);
      for (const StageAction& action : script_.rooms[i].actions)
        add(action.range.begin_ns, kRuns, action_words(script_, action), room, action.range.length_ns());
      for (const StageWait& wait : script_.rooms[i].waits) waits(room, wait);
    }
    for (const StageFlow& flow : script_.flows) travels(flow);
    shards();
    write();
  }

 private:
  struct Key {
    int64_t time_ns;
    std::string_view one;
    std::string rest;  // what follows the verb
    std::string size;  // size of what travels, written after the receivers
    bool operator<(const Key& other) const {
      return std::tie(time_ns, one, rest, size) < std::tie(other.time_ns, other.one, other.rest, other.size);
    }
  };
  struct Told {
    Verbs verbs;
    std::set<int> rooms, receivers;
    int64_t weight_ns = 0;
  };

  Told& add(int64_t time_ns, Verbs verbs, const std::string& rest, int room, int64_t weight_ns,
            const std::string& size = "") {
    Told& told = told_[{time_ns, verbs.one, rest, size}];
    told.verbs = verbs;
    told.rooms.insert(room);
    told.weight_ns = std::max(told.weight_ns, weight_ns);
    return told;
  }

  void waits(int room, const StageWait& wait) {
    const bool exposed = wait.cause == BubbleCause::kExposed;
    if (wait.range.length_ns() < shortest_ns_ * (exposed ? 2 : 1)) return;
    add(wait.range.begin_ns, kWaits, format_time(store_, wait.range.length_ns()) + ": " + script_.text(wait.text), room,
        wait.range.length_ns());
  }

  // Names both ends of a message, or a collective's members together with others that make the same call at that
  // moment.
  void travels(const StageFlow& flow) {
    const std::vector<StagePair>& pairs = script_.pair_sets[flow.pairs];
    const StageFlowKind& kind = script_.kinds[flow.kind];
    // A message of a drawn schedule has no bytes.
    const std::string size =
        flow.bytes > 0 ? " (" + human_bytes(static_cast<double>(flow.bytes)) + " " + std::string(name(flow.dtype)) + ")"
                       : "";
    const StagePath& way = script_.paths[pairs.front().path];
    if (flow.verb == Verb::kSend || flow.verb == Verb::kRecv) {
      std::string what = flow.microbatch < 0 ? "bytes"
                         : flow.gradients    ? "gradients of microbatch " + std::to_string(flow.microbatch)
                                             : "activations of microbatch " + std::to_string(flow.microbatch);
      if (kind.purpose != Purpose::kOther) what = kind.words;
      add(flow.range.begin_ns, {"sends", "send"}, what, way.from, std::max(flow.range.length_ns(), shortest_ns_), size)
          .receivers.insert(way.to);
      return;
    }
    if (flow.range.length_ns() < shortest_ns_ && kind.purpose == Purpose::kOther) return;
    const std::string what =
        kind.purpose == Purpose::kOther ? "of " + std::string(name(kind.axis)) : "for " + kind.words;
    const std::string rest = std::string(name(flow.verb)) + " " + what + size;
    for (const StagePair& pair : pairs)
      for (const uint16_t room : {script_.paths[pair.path].from, script_.paths[pair.path].to})
        add(flow.range.begin_ns, kRuns, rest, room, flow.range.length_ns());
  }

  void shards() {
    for (const ZeroBucketRow& row : script_.zero.rows) {
      if (row.shards < 2) continue;
      for (size_t i = 0; i < script_.rooms.size(); ++i) {
        for (const auto& [time, state] : row.cells[script_.rooms[i].rank_index].history) {
          const int room = static_cast<int>(i);
          if (state == ZeroState::kGathering) add(time, kGathers, "the parameters of " + row.label, room, shortest_ns_);
          if (state == ZeroState::kFreed) add(time, kFrees, "the parameters of " + row.label, room, shortest_ns_);
          if (state == ZeroState::kReduced)
            add(time, kSums, "the summed gradients of " + row.label, room, shortest_ns_);
        }
      }
    }
  }

  // Keeps the lines with the greatest weight, sorted by time; among those with the least weight kept, the earliest.
  void write() {
    int64_t least = 0;
    size_t equal = told_.size();
    if (told_.size() > kMostLines) {
      std::vector<int64_t> weights;
      for (const auto& [key, told] : told_) weights.push_back(told.weight_ns);
      std::nth_element(weights.begin(), weights.begin() + kMostLines, weights.end(), std::greater<>());
      least = weights[kMostLines];
      equal = kMostLines - static_cast<size_t>(std::count_if(weights.begin(), weights.begin() + kMostLines,
                                                             [&](int64_t weight) { return weight > least; }));
    }
    for (const auto& [key, told] : told_) {
      if (told.weight_ns < least || (told.weight_ns == least && equal == 0)) continue;
      if (told.weight_ns == least) --equal;
      const std::vector<int> rooms(told.rooms.begin(), told.rooms.end());
      const std::vector<int> receivers(told.receivers.begin(), told.receivers.end());
      std::string words = rooms_words(script_, rooms) + " ";
      words += std::string(rooms.size() == 1 ? told.verbs.one : told.verbs.several) + " " + key.rest;
      if (!receivers.empty()) words += " to " + rooms_words(script_, receivers);
      script_.lines.push_back({key.time_ns, rooms.front(), words + key.size});
    }
  }

  const TraceStore& store_;
  StageScript& script_;
  int64_t shortest_ns_;
  std::map<Key, Told> told_;
};

}  // namespace

void narrate(const TraceStore& store, StageScript& script) { Narrator(store, script).tell(); }

}  // namespace ranklab::viz
