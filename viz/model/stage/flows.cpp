// Fills what travels between rooms: every call as pairs of rooms, with the curve, the bytes and the rate.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "viz/model/stage/parts.h"
#include "viz/model/stage/words.h"
#include "viz/model/store/stalls.h"
#include "viz/model/tables/comm_table.h"
#include "viz/model/tables/traffic_matrix.h"

namespace ranklab::viz {
namespace {

// The number of pairs shown for one call, the largest ones: with more lines, none could be recognized in the picture.
constexpr size_t kMostPairs = 256;

class FlowFiller {
 public:
  FlowFiller(const TraceStore& store, StageScript& script) : store_(store), script_(script) {
    for (size_t i = 0; i < script.rooms.size(); ++i) room_of_[script.rooms[i].global_rank] = static_cast<int>(i);
  }

  void fill() {
    for (const CommCall& call : comm_calls(store_, script_.window)) add(call);
    std::stable_sort(script_.flows.begin(), script_.flows.end(),
                     [](const StageFlow& a, const StageFlow& b) { return a.range.begin_ns < b.range.begin_ns; });
    sort_kinds();
    set_widths();
  }

 private:
  void add(const CommCall& call) {
    const TimeRange range{std::max(call.begin_ns, script_.window.range.begin_ns),
                          std::min(call.end_ns, script_.window.range.end_ns)};
    if (range.length_ns() < 0 || call.sides.empty()) return;
    std::vector<StagePair> pairs = pairs_of(call);
    if (pairs.empty()) return;
    StageFlow flow{.range = range, .verb = call.verb, .dtype = call.dtype, .event = call.sides.front().event};
    for (const StagePair& pair : pairs) flow.bytes += pair.bytes;
    keep_largest(pairs);
    const int64_t largest = std::max_element(pairs.begin(), pairs.end(), [](const StagePair& a, const StagePair& b) {
                              return a.bytes < b.bytes;
                            })->bytes;
    for (StagePair& pair : pairs)
      pair.width = largest > 0
                       ? static_cast<float>(std::sqrt(static_cast<double>(pair.bytes) / static_cast<double>(largest)))
                       : 1;
    flow.width = static_cast<float>(static_cast<double>(largest) * 1e9 /
                                    static_cast<double>(std::max<int64_t>(call.end_ns - call.begin_ns, 1)));
    flow.kind = kind_of(call);
    if (call.message() && call.axis == Axis::kPp) set_microbatch(call, flow);
    const auto [at, is_new] = sets_.try_emplace(std::move(pairs), static_cast<uint32_t>(script_.pair_sets.size()));
    if (is_new) script_.pair_sets.push_back(at->first);
    flow.pairs = at->second;
    script_.flows.push_back(flow);
  }

  std::vector<StagePair> pairs_of(const CommCall& call) {
    std::map<uint32_t, int64_t> bytes_of_path;
    for (const CommSide& side : call.sides) {
      const auto from = room_of_.find(side.global_rank);
      if (from == room_of_.end()) continue;
      visit_sends(store_.trace(side.event.rank_index), store_.event(side.event), store_.clock(),
                  [&](int to_rank, const TrafficCell& cell) {
                    const auto to = room_of_.find(to_rank);
                    if (to == room_of_.end() || to == from) return;
                    const int64_t bytes = std::max(cell.of(TrafficLayer::kAlgorithm), cell.of(TrafficLayer::kLogical));
                    // A message of a drawn schedule has no bytes.
                    if (bytes > 0 || call.message()) bytes_of_path[path_id(from->second, to->second)] += bytes;
                  });
    }
    std::vector<StagePair> pairs;
    for (const auto& [path, bytes] : bytes_of_path) pairs.push_back({path, bytes, 1});
    return pairs;
  }

  static void keep_largest(std::vector<StagePair>& pairs) {
    if (pairs.size() <= kMostPairs) return;
    std::nth_element(pairs.begin(), pairs.begin() + kMostPairs, pairs.end(),
                     [](const StagePair& a, const StagePair& b) { return a.bytes > b.bytes; });
    pairs.resize(kMostPairs);
    std::sort(pairs.begin(), pairs.end());
  }

  uint32_t path_id(int from, int to) {
    const auto [at, is_new] = paths_.try_emplace({from, to}, static_cast<uint32_t>(script_.paths.size()));
    if (is_new) script_.paths.push_back(path_between(script_, static_cast<size_t>(from), static_cast<size_t>(to)));
    return at->second;
  }

  uint32_t kind_of(const CommCall& call) {
    const auto [at, is_new] =
        kinds_.try_emplace({call.axis, call.purpose}, static_cast<uint32_t>(script_.kinds.size()));
    if (is_new)
      script_.kinds.push_back(
          {call.axis, call.purpose, flow_colour(call.axis, call.purpose), flow_words(call.axis, call.purpose)});
    return at->second;
  }

  // A message carries what its sender has just computed.
  void set_microbatch(const CommCall& call, StageFlow& flow) {
    const CommSide& side = call.sides.front();
    const Event& event = store_.event(side.event);
    flow.microbatch = event.microbatch;
    if (event.verb != Verb::kSend) return;
    const int64_t posted = side.posted_ns == kNoTime ? call.begin_ns : side.posted_ns;
    const auto work = work_before(store_, side.event.rank_index, posted);
    if (!work) return;
    const Paint paint = paint_of(store_.event(*work), store_.name(*work));
    flow.gradients = paint != Paint::kForward;
  }

  // Sorted as in the vocabulary, so that the legend has the same order in every trace.
  void sort_kinds() {
    std::vector<StageFlowKind> sorted;
    std::vector<uint32_t> now(script_.kinds.size());
    for (const auto& [key, old] : kinds_) {
      now[old] = static_cast<uint32_t>(sorted.size());
      sorted.push_back(script_.kinds[old]);
    }
    script_.kinds = std::move(sorted);
    for (StageFlow& flow : script_.flows) flow.kind = now[flow.kind];
  }

  void set_widths() {
    float fastest = 0;
    for (const StageFlow& flow : script_.flows) fastest = std::max(fastest, flow.width);
    script_.fastest_bytes_per_s = static_cast<int64_t>(std::min(static_cast<double>(fastest), 9e18));
    int64_t latest = script_.window.range.begin_ns;
    for (StageFlow& flow : script_.flows) {
      flow.width = fastest > 0 ? std::sqrt(flow.width / fastest) : 0;
      latest = std::max(latest, flow.range.end_ns);
      script_.flows_until_ns.push_back(latest);
    }
  }

  const TraceStore& store_;
  StageScript& script_;
  std::map<int, int> room_of_;
  std::map<std::pair<int, int>, uint32_t> paths_;
  std::map<std::pair<Axis, Purpose>, uint32_t> kinds_;
  std::map<std::vector<StagePair>, uint32_t> sets_;
};

}  // namespace

void fill_flows(const TraceStore& store, StageScript& script) { FlowFiller(store, script).fill(); }

}  // namespace ranklab::viz
