// Fills what each room does: its actions, the modules in them, what it waits for, and the microbatches whose
// activations it holds.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "core/base/text.h"
#include "viz/model/stage/parts.h"
#include "viz/model/stage/words.h"
#include "viz/model/tables/precision_table.h"

namespace ranklab::viz {
namespace {

constexpr std::string_view kBackwardPass = " backward";

const Row* compute_row(const TraceStore& store, size_t rank) {
  for (const Row& row : store.rank(rank).rows) {
    const Track& track = row.tracks.front();
    if (track.size() > 0 && store.trace(rank).events[track.event.front()].kind == EventKind::kCompute) return &row;
  }
  return nullptr;
}

// The layer in "layers.3.attention"; -1: none.
int layer_of(std::string_view path) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = path.find(kLayers);
  return at == std::string_view::npos ? -1 : std::atoi(std::string(path.substr(at + kLayers.size(), 6)).c_str());
}

// "layers.3.attention backward" -> "layer 3 attention"; "layers.3" -> "layer 3".
std::string module_words(std::string_view path) {
  if (path.ends_with(kBackwardPass)) path.remove_suffix(kBackwardPass.size());
  std::string words(path);
  if (words.starts_with("layers.")) words.replace(0, 7, "layer ");
  std::replace(words.begin(), words.end(), '.', ' ');
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

// The number formats of the linear layers inside a module, from the sampled steps.
class Formats {
 public:
  Formats(const TraceStore& store, int step) : table_(precision_table(store)), step_(step) {}

  // The format that a module multiplies in, such as "E4M3": that of its activations in forward and of its gradients in
  // backward; "": not known.
  std::string of(std::string_view path) {
    const auto [at, is_new] = known_.try_emplace(std::string(path));
    if (is_new) at->second = find(path);
    return at->second;
  }

 private:
  std::string find(std::string_view path) const {
    const bool backward = path.ends_with(kBackwardPass);
    if (backward) path.remove_suffix(kBackwardPass.size());
    const TensorRole role = backward ? TensorRole::kGradient : TensorRole::kActivation;
    for (const TensorSeries& tensor : table_.tensors) {
      const bool inside =
          tensor.module.starts_with(path) && (tensor.module.size() == path.size() || tensor.module[path.size()] == '.');
      if (tensor.role != role || !inside) continue;
      if (const TensorSample* sample = tensor.at(step_)) return sample->format_text();
    }
    return "";
  }

  PrecisionTable table_;
  int step_;
  std::map<std::string, std::string> known_;
};

class RoomFiller {
 public:
  RoomFiller(const TraceStore& store, StageScript& script, StageTexts& texts, Formats& formats)
      : store_(store), script_(script), texts_(texts), formats_(formats) {}

  void fill(size_t index) {
    index_ = static_cast<int>(index);
    room_ = &script_.rooms[index];
    actions();
    phases();
    modules();
    held();
  }

 private:
  bool counts(const Event& event) const { return script_.window.has(event, store_.clock()); }
  EventRef ref(uint32_t event) const { return {room_->rank_index, event}; }
  TimeRange clipped(const Track& track, size_t i) const {
    return {std::max(track.begin_ns[i], script_.window.range.begin_ns),
            std::min(track.end_ns[i], script_.window.range.end_ns)};
  }

  void actions() {
    const Row* row = compute_row(store_, room_->rank_index);
    if (row == nullptr) return;
    const Track& track = row->tracks.front();
    for (size_t i = 0; i < track.size(); ++i) {
      const Event& event = store_.event(ref(track.event[i]));
      // A module or kernel outside of any action is drawn below, with the modules.
      if (event.kind != EventKind::kCompute || !counts(event)) continue;
      const TimeRange range = clipped(track, i);
      if (range.empty()) continue;
      room_->actions.push_back(
          {range, texts_.id(store_.text(ref(track.event[i]))), track.paint[i], event.microbatch, track.event[i]});
      if (event.microbatch >= 0) script_.microbatches.push_back({range.begin_ns, index_});
    }
  }

  // What a rank does outside of actions, such as the optimizer: the innermost phases that do not overlap anything added
  // so far.
  void phases() {
    for (const Row& row : store_.rank(room_->rank_index).rows) {
      for (size_t depth = row.tracks.size(); depth-- > 0;) {
        const Track& track = row.tracks[depth];
        std::vector<StageAction> more;
        for (size_t i = 0; i < track.size(); ++i) {
          const Event& event = store_.event(ref(track.event[i]));
          const TimeRange range = clipped(track, i);
          if (event.kind != EventKind::kPhase || !counts(event) || range.empty() || overlaps(range)) continue;
          more.push_back(
              {range, texts_.id(std::string(store_.name(ref(track.event[i])))), track.paint[i], -1, track.event[i]});
        }
        room_->actions.insert(room_->actions.end(), more.begin(), more.end());
        std::sort(room_->actions.begin(), room_->actions.end(),
                  [](const StageAction& a, const StageAction& b) { return a.range.begin_ns < b.range.begin_ns; });
      }
    }
  }
  bool overlaps(TimeRange range) const {
    const auto after =
        std::lower_bound(room_->actions.begin(), room_->actions.end(), range.end_ns,
                         [](const StageAction& action, int64_t time) { return action.range.begin_ns < time; });
    return after != room_->actions.begin() && (after - 1)->range.end_ns > range.begin_ns;
  }

  void modules() {
    for (const Row& row : store_.rank(room_->rank_index).rows) {
      for (const Track& track : row.tracks) {
        std::vector<StageModule> of_track;
        for (size_t i = 0; i < track.size(); ++i) {
          const Event& event = store_.event(ref(track.event[i]));
          const TimeRange range = clipped(track, i);
          if (event.kind != EventKind::kModule || !counts(event) || range.empty()) continue;
          const std::string_view path = store_.name(ref(track.event[i]));
          of_track.push_back({range, texts_.id(module_words(path)), texts_.id(formats_.of(path)), layer_of(path)});
        }
        if (of_track.empty()) continue;
        if (room_->modules.empty()) layer_marks(of_track);
        room_->modules.push_back(std::move(of_track));
      }
    }
  }
  void layer_marks(const std::vector<StageModule>& outermost) {
    for (const StageModule& one : outermost) script_.layers.push_back({one.range.begin_ns, index_});
  }

  // Each microbatch is held from its forward to its last backward action on this rank.
  void held() {
    std::map<int, StageHeld> open;
    for (const StageAction& action : room_->actions) {
      const bool known = open.contains(action.microbatch);
      if (action.microbatch < 0 || (!known && action.paint != Paint::kForward && action.paint != Paint::kPair))
        continue;
      StageHeld& one = open.try_emplace(action.microbatch, StageHeld{action.range, action.microbatch}).first->second;
      one.range.end_ns = std::max(one.range.end_ns, action.range.end_ns);
    }
    for (const auto& [microbatch, one] : open) room_->held.push_back(one);
    std::sort(room_->held.begin(), room_->held.end(),
              [](const StageHeld& a, const StageHeld& b) { return a.range.begin_ns < b.range.begin_ns; });
  }

  const TraceStore& store_;
  StageScript& script_;
  StageTexts& texts_;
  Formats& formats_;
  StageRoom* room_ = nullptr;
  int index_ = 0;
};

void fill_waits(const TraceStore& store, StageScript& script, StageTexts& texts) {
  const BubbleReport report = find_bubbles(store, script.window);
  for (StageRoom& room : script.rooms) {
    const RankBubbles& bubbles = report.ranks[room.rank_index];
    room.unrecorded = bubbles.unrecorded;
    room.lost = bubbles.lost;
    for (const IdleInterval& idle : bubbles.idle) {
      const int other = idle.waits_for_rank < 0 ? -1 : script.room_of_rank(idle.waits_for_rank);
      room.waits.push_back(
          {idle.range, idle.cause, texts.id(wait_words(store, room.rank_index, idle)), other, idle.event});
    }
    if (room.unrecorded.empty()) continue;
    // An action is recorded when it ends, after the modules and calls in it, so what happened after the last action is
    // not known.
    int64_t known_ns = script.window.range.begin_ns;
    if (!room.actions.empty()) known_ns = std::max(known_ns, room.actions.back().range.end_ns);
    for (const StageWait& wait : room.waits)
      if (wait.range.begin_ns <= known_ns) known_ns = std::max(known_ns, wait.range.end_ns);
    room.unrecorded.begin_ns = std::min(room.unrecorded.begin_ns, known_ns);
  }
}

void sort_marks(std::vector<StageMark>& marks) {
  std::stable_sort(marks.begin(), marks.end(),
                   [](const StageMark& a, const StageMark& b) { return a.time_ns < b.time_ns; });
}

}  // namespace

void fill_rooms(const TraceStore& store, StageScript& script, StageTexts& texts) {
  Formats formats(store, script.window.step);
  RoomFiller filler(store, script, texts, formats);
  for (size_t i = 0; i < script.rooms.size(); ++i) filler.fill(i);
  fill_waits(store, script, texts);
  sort_marks(script.microbatches);
  sort_marks(script.layers);
  std::set<std::string> seen;
  for (const StageRoom& room : script.rooms)
    for (const std::vector<StageModule>& modules : room.modules)
      for (const StageModule& one : modules)
        if (one.format != kNoText) seen.insert(script.text(one.format));
  script.formats.assign(seen.begin(), seen.end());
}

}  // namespace ranklab::viz
