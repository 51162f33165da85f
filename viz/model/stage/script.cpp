#include "viz/model/stage/script.h"

#include <algorithm>

#include "core/base/zero_stage.h"
#include "viz/model/stage/parts.h"

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
  // Goes backwards as long as a flow that began earlier may still be visible.
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

namespace {

// A score for how much there is to see at a time.
int sights(const StageScript& script, int64_t time_ns, std::vector<uint32_t>& flows) {
  int works = 0, waits = 0, gathered = 0, travels = 0, formats = 0;
  for (const StageRoom& room : script.rooms) {
    const StageWait* wait = at_time(room.waits, time_ns);
    const bool waits_for_one = wait != nullptr && wait->room >= 0;
    (waits_for_one ? waits : works) += waits_for_one || at_time(room.actions, time_ns) != nullptr;
    const StageModule* module = wait == nullptr ? module_at(room, time_ns) : nullptr;
    formats += module != nullptr && module->format != kNoText;
    if (!script.has_shards()) continue;
    for (const ZeroBucketRow& row : script.zero.rows)
      gathered += row.cells[room.rank_index].present &&
                  row.parameters_at(room.rank_index, time_ns, script.zero.stage) == HeldParameters::kGathered;
  }
  flows_at(script, time_ns, 0, flows);
  // A flow with few pairs is a message, one with many is an exchange.
  for (const uint32_t flow : flows)
    travels = std::max(travels, 2 + 2 * static_cast<int>(script.pair_sets[script.flows[flow].pairs].size() > 16) +
                                    static_cast<int>(script.flows[flow].microbatch >= 0 ||
                                                     script.kinds[script.flows[flow].kind].purpose != Purpose::kOther));
  return std::min(works, 2) + 2 * std::min(waits, 2) + 2 * std::min(gathered, 1) + 3 * std::min(formats, 1) + travels;
}

}  // namespace

int64_t recorded_until(const StageScript& script) {
  int64_t until = script.window.range.end_ns;
  for (const StageRoom& room : script.rooms)
    if (room.unrecorded.begin_ns > script.window.range.begin_ns) until = std::min(until, room.unrecorded.begin_ns);
  return std::max(until, script.window.range.begin_ns);
}

int64_t telling_moment(const StageScript& script) {
  // Tries the middle of flows, and evenly spread times, but not both ends of the step, where a pipeline fills and
  // drains.
  const TimeRange range = script.window.range;
  std::vector<int64_t> times;
  constexpr int64_t kSpread = 200;
  for (int64_t i = kSpread / 5; i < kSpread * 3 / 5; ++i)
    times.push_back(range.begin_ns + range.length_ns() / kSpread * i);
  const size_t every = script.flows.size() / 400 + 1;
  for (size_t i = 0; i < script.flows.size(); i += every) {
    const int64_t middle = script.flows[i].range.begin_ns + script.flows[i].range.length_ns() / 2;
    if (middle > times.front() && middle < times[static_cast<size_t>(kSpread * 2 / 5 - 1)]) times.push_back(middle);
  }
  std::vector<uint32_t> flows;
  int64_t best = times.front();
  int most = -1;
  for (const int64_t time : times) {
    const int now = sights(script, time, flows);
    if (now <= most) continue;
    most = now;
    best = time;
  }
  return best;
}

}  // namespace ranklab::viz
