// A step as an animation: the ranks as rooms on their links, what each of them does or waits for, what travels between
// them, what they hold, and a narrator's words. Everything is an interval or a moment, which the panel or the HTML page
// looks up for the current time, so nothing is computed while it plays. Places are in a unit square. Cost: O(n log n)
// in the events of the window to create, O(log n) per lookup. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/memory_table.h"
#include "viz/model/tables/zero_table.h"

namespace ranklab::viz {

constexpr size_t kMostRooms = 256;  // more rooms would be too small to distinguish
constexpr uint32_t kNoText = 0;     // StageScript::texts begins with ""

struct StageBox {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  double width() const { return x1 - x0; }
  double height() const { return y1 - y0; }
};

// The GPUs of a node, which share fast links.
struct StageNode {
  int number = 0;
  StageBox box;
};

// An action or another compute span: only the outermost spans of a rank, which never overlap.
struct StageAction {
  TimeRange range;
  uint32_t text = kNoText;  // "F3"
  Paint paint = Paint::kCompute;
  int microbatch = -1;
  uint32_t event = 0;  // index among its rank's events
};

// The use of a module inside an action.
struct StageModule {
  TimeRange range;
  uint32_t text = kNoText;    // "layer 3 attention"
  uint32_t format = kNoText;  // "E4M3": the number format of its products, if that was sampled
  int layer = -1;
};

struct StageWait {
  TimeRange range;
  BubbleCause cause = BubbleCause::kHost;
  uint32_t text = kNoText;  // "B0 is still on r2"
  int room = -1;            // the room that it waits for; -1: none, or not shown
  size_t event = kNoEvent;  // index among its rank's events: the call in which it waits
};

// The activations of a microbatch, held from its forward to the end of its last backward action.
struct StageHeld {
  TimeRange range;
  int microbatch = -1;
};

struct StageRoom {
  size_t rank_index = 0;
  int global_rank = 0;
  std::string name;         // "r3"
  std::string coordinates;  // "dp0 tp1 pp1"
  int node = -1;            // number of its node; -1: not known
  StageBox box;
  std::vector<StageAction> actions;               // by time, disjoint
  std::vector<std::vector<StageModule>> modules;  // [depth], each by time, disjoint
  std::vector<StageWait> waits;                   // by time, disjoint
  std::vector<StageHeld> held;                    // sorted by begin
  RankMemory memory;                              // thinned to few enough samples to draw
  TimeRange unrecorded;                           // the end of the window, in a partial trace
  std::vector<TimeRange> lost;                    // as in TraceStore::lost()
};

// The curve between two rooms: a quadratic Bezier curve from border to border.
struct StagePath {
  uint16_t from = 0, to = 0;
  bool between_nodes = false;
  double x0 = 0, y0 = 0, control_x = 0, control_y = 0, x1 = 0, y1 = 0;
};

struct StagePair {
  uint32_t path = 0;
  int64_t bytes = 0;
  float width = 1;  // relative to the widest pair of its flow
  auto operator<=>(const StagePair&) const = default;
};

// A collective or message that occupies its links.
struct StageFlow {
  TimeRange range;
  uint32_t pairs = 0;  // index into StageScript::pair_sets
  uint32_t kind = 0;   // index into StageScript::kinds
  Verb verb = Verb::kBarrier;
  DType dtype = DType::kOther;  // the type that is sent
  int microbatch = -1;          // for a pipeline message
  bool gradients = false;       // for a pipeline message: gradients; else activations
  int64_t bytes = 0;            // sum over all pairs
  float width = 0;              // 0 to 1: root of (bytes per second of its largest pair / the step's largest)
  EventRef event;               // the event of one member
};

// An axis and a purpose, which determine the colour of a flow.
struct StageFlowKind {
  Axis axis = Axis::kWorld;
  Purpose purpose = Purpose::kOther;
  Rgba colour = 0;
  std::string words;  // "ep dispatch: tokens go to their experts"
};

struct StageLine {
  int64_t time_ns = 0;
  int room = -1;  // the first room that it mentions
  std::string words;
};

// A moment to which the user can step: the begin of a microbatch's action, or of a layer.
struct StageMark {
  int64_t time_ns = 0;
  int room = -1;
};

struct StageScript {
  Window window;
  std::string title;  // model and layout
  std::vector<StageRoom> rooms;
  size_t folded_ranks = 0;  // number of ranks without a room
  int columns = 1, rows = 1;
  double gap_x = 0, gap_y = 0;   // between neighbours in a block
  std::vector<StageNode> nodes;  // empty: not known
  std::vector<StagePath> paths;
  std::vector<std::vector<StagePair>> pair_sets;  // each distinct set once
  std::vector<StageFlow> flows;                   // sorted by begin
  std::vector<int64_t> flows_until_ns;            // [flow]: the latest end of this and all earlier flows
  std::vector<StageFlowKind> kinds;
  int64_t fastest_bytes_per_s = 0;  // of a pair: the rate that the widest flow represents
  ZeroTable zero;                   // columns are rank indices
  double memory_top_bytes = 0;      // scale of the bars
  double memory_limit_bytes = 0;    // memory of a device; 0: unknown
  std::vector<StageLine> lines;     // sorted by time
  std::vector<StageMark> microbatches, layers;
  std::vector<std::string> texts;
  std::vector<std::string> formats;  // number formats of modules, "E4M3"; empty: not sampled

  bool empty() const { return rooms.empty() || window.range.empty(); }
  const std::string& text(uint32_t id) const { return texts[id]; }
  // RETURNS: -1 if the rank has no room.
  int room_of_rank(int global_rank) const;
  bool has_shards() const;  // whether parameters are gathered and freed
  // How long after its end a flow is still drawn, fading out, because calls are much shorter than actions.
  int64_t linger_ns() const { return window.range.length_ns() / 100; }
};

// An empty window, or a store without ranks, gives an empty script.
StageScript stage_script(const TraceStore& store, const Window& window);

// Of disjoint intervals sorted by time, the one that contains a moment; null if none does.
template <typename T>
const T* at_time(std::span<const T> intervals, int64_t time_ns) {
  size_t low = 0, high = intervals.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    (intervals[middle].range.begin_ns <= time_ns ? low : high) = middle + (intervals[middle].range.begin_ns <= time_ns);
  }
  if (low == 0 || intervals[low - 1].range.end_ns <= time_ns) return nullptr;
  return &intervals[low - 1];
}
template <typename T>
const T* at_time(const std::vector<T>& intervals, int64_t time_ns) {
  return at_time(std::span<const T>(intervals), time_ns);
}

const StageModule* module_at(const StageRoom& room, int64_t time_ns);  // the deepest one; null: none
const MemorySample* memory_at(const StageRoom& room, int64_t time_ns);
// Indices of the flows that are on their links at a time, or ended less than `linger_ns` before it, sorted by begin.
void flows_at(const StageScript& script, int64_t time_ns, int64_t linger_ns, std::vector<uint32_t>& out);
// The last lines up to a time, newest last; at most `most`.
std::span<const StageLine> lines_at(const StageScript& script, int64_t time_ns, size_t most);
// The next mark after a time, or the last one before it, in a room (-1: in any); kNoTime if there is none.
int64_t next_mark(const std::vector<StageMark>& marks, int64_t time_ns, int room);
int64_t previous_mark(const std::vector<StageMark>& marks, int64_t time_ns, int room);

// The time up to which every rank has recorded what it did, ignoring ranks that have not recorded anything yet.
int64_t recorded_until(const StageScript& script);
// A moment at which much is to be seen: some ranks work, others wait, something travels, a layer is gathered.
int64_t telling_moment(const StageScript& script);

// "16.8 MiB, 0.02 % of the device's 80.0 GiB": what the full height of a bar means.
std::string memory_scale_text(const StageScript& script);
// The narrator's lines with their times since the step's begin, for terminals.
std::string stage_text(const TraceStore& store, const StageScript& script);

}  // namespace ranklab::viz
