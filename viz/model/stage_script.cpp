#include "viz/model/stage_script.h"

#include <algorithm>

#include "core/base/zero_stage.h"
#include "viz/model/stage_parts.h"

namespace ranklab::viz {

StageScript stage_script(const TraceStore& store, const Window& window) {
  StageScript script;
  script.window = window;
  script.title = store.title();
  StageTexts texts(script.texts);
  if (window.range.empty()) return script;
  place_rooms(store, script);
  fill_rooms(store, script, texts);
  fill_flows(store, script);
  fill_holdings(store, script);
  narrate(store, script);
  return script;
}

int StageScript::room_of_rank(int global_rank) const {
  const auto at =
      std::find_if(rooms.begin(), rooms.end(), [&](const StageRoom& room) { return room.global_rank == global_rank; });
  return at == rooms.end() ? -1 : static_cast<int>(at - rooms.begin());
}

bool StageScript::has_shards() const {
  return zero_stage_row(zero.stage).parameters &&
         std::any_of(zero.rows.begin(), zero.rows.end(), [](const ZeroBucketRow& row) { return row.shards > 1; });
}

const StageModule* module_at(const StageRoom& room, int64_t time_ns) {
  for (size_t depth = room.modules.size(); depth-- > 0;)
    if (const StageModule* found = at_time(room.modules[depth], time_ns)) return found;
  return nullptr;
}

const MemorySample* memory_at(const StageRoom& room, int64_t time_ns) {
  const std::vector<MemorySample>& samples = room.memory.samples;
  const auto after = std::upper_bound(samples.begin(), samples.end(), time_ns,
                                      [](int64_t time, const MemorySample& sample) { return time < sample.time_ns; });
  if (samples.empty()) return nullptr;
  return after == samples.begin() ? &samples.front() : &*(after - 1);
}

void flows_at(const StageScript& script, int64_t time_ns, int64_t linger_ns, std::vector<uint32_t>& out) {
  out.clear();
  const auto after = std::upper_bound(script.flows.begin(), script.flows.end(), time_ns,
                                      [](int64_t time, const StageFlow& flow) { return time < flow.range.begin_ns; });
  // Backwards, as long as one that began earlier may still be there.
  for (auto i = static_cast<size_t>(after - script.flows.begin()); i-- > 0;) {
    if (script.flows_until_ns[i] <= time_ns - linger_ns) break;
    const TimeRange& range = script.flows[i].range;
    if (range.end_ns > time_ns - linger_ns || (range.begin_ns == time_ns && range.empty()))
      out.push_back(static_cast<uint32_t>(i));
  }
  std::reverse(out.begin(), out.end());
}

std::span<const StageLine> lines_at(const StageScript& script, int64_t time_ns, size_t most) {
  const auto after = std::upper_bound(script.lines.begin(), script.lines.end(), time_ns,
                                      [](int64_t time, const StageLine& line) { return time < line.time_ns; });
  const auto count = static_cast<size_t>(after - script.lines.begin());
  const size_t first = count > most ? count - most : 0;
  return std::span<const StageLine>(script.lines).subspan(first, count - first);
}

int64_t next_mark(const std::vector<StageMark>& marks, int64_t time_ns, int room) {
  auto at = std::upper_bound(marks.begin(), marks.end(), time_ns,
                             [](int64_t time, const StageMark& mark) { return time < mark.time_ns; });
  at = std::find_if(at, marks.end(), [&](const StageMark& mark) { return room < 0 || mark.room == room; });
  return at == marks.end() ? kNoTime : at->time_ns;
}

int64_t previous_mark(const std::vector<StageMark>& marks, int64_t time_ns, int room) {
  auto at = std::lower_bound(marks.begin(), marks.end(), time_ns,
                             [](const StageMark& mark, int64_t time) { return mark.time_ns < time; });
  while (at != marks.begin()) {
    --at;
    if (room < 0 || at->room == room) return at->time_ns;
  }
  return kNoTime;
}

}  // namespace ranklab::viz
