#include "viz/panels/parts/workspace.h"

#include <cmath>

#include "core/base/text.h"
#include "viz/model/store/deep_link.h"
#include "viz/model/store/load_trace.h"

namespace ranklab::viz {

constexpr size_t kLogLines = 2000;
// For a live trace: seconds between updates of tables, and how much is added per event (for a million: two seconds).
constexpr double kTablesAfter = 0.2, kTablesAfterEvent = 2e-6;

Workspace::Workspace() : store_(std::make_unique<TraceStore>()) {}
Workspace::~Workspace() = default;

void Workspace::load(TraceStore store) {
  store_ = std::make_unique<TraceStore>(std::move(store));
  ++loaded_;
  // The end of an earlier live run does not belong to the new trace.
  live.reset();
  live_ended_ = false;
  live_end_ = {};
  cursor = {store_->range().begin_ns, {}};
  area.reset();
  mark_ns.reset();
  filter = {};
  scope = Scope::kTrace;
  playback.state = PlayState::kPaused;
  camera.show(store_->range(), 0.01);
  if (store_->empty()) return;
  // Many steps at once would be too fine to see, so one is shown: not the first one if there are others, because it
  // includes warm-up.
  if (const auto steps = store_->steps(); steps.size() > 1) {
    camera.show(steps[1].range, 0.01);
    cursor.time_ns = steps[1].range.begin_ns;
  }
  log(LogLine::Level::kInfo,
      strprintf("opened %s: %zu ranks, %s events, %zu steps", store_->source().c_str(), store_->ranks().size(),
                human_count(static_cast<double>(store_->num_events())).c_str(), store_->steps().size()));
  if (!store_->warning().empty()) log(LogLine::Level::kWarning, store_->warning());
  if (store_->dropped() > 0) {
    log(LogLine::Level::kWarning, strprintf("%lld events are missing: the recorders' memory was full",
                                            static_cast<long long>(store_->dropped())));
  }
}

void Workspace::load_other(TraceStore store) {
  other_ = std::make_unique<TraceStore>(std::move(store));
  log(LogLine::Level::kInfo, "compares with " + other_->source());
}

void Workspace::load_parity(ParityMap map, const std::string& source) {
  log(LogLine::Level::kInfo,
      strprintf("parity of %s: %zu tensors on %zu ranks", source.c_str(), map.rows.size(), map.ranks.size()));
  parity_ = std::make_shared<const ParityMap>(std::move(map));
}

void Workspace::open(const std::string& path) { load(load_trace(path)); }

void Workspace::go_to(const std::string& deep_link) {
  const Goto target = resolve(*store_, parse_deep_link(deep_link, store_->unit_ns()));
  if (target.event) {
    select(target.event);
  } else {
    set_time(target.time_ns);
  }
  if (const auto step = store_->step_window(target.step)) camera.show(step->range, 0.02);
}

std::string Workspace::deep_link() const {
  return to_text(link_to(*store_, cursor.time_ns, cursor.event), store_->unit_ns());
}

Window Workspace::window() const {
  if (scope == Scope::kArea && area) return {area->range, -1};
  if (scope == Scope::kStep) {
    if (const auto step_window = store_->step_window(step())) return *step_window;
  }
  return store_->whole();
}

ContentKey Workspace::content(const Window& window) const {
  if (live == nullptr) return {loaded_, store_->revision(), window};
  return {loaded_, table_revision_, {store_->range() == window.range ? tables_range_ : window.range, window.step}};
}
ContentKey Workspace::content() const { return content(window()); }

const BubbleReport& Workspace::bubbles() {
  return bubbles_.get(content(), [this] { return find_bubbles(*store_, window()); });
}

const BubbleReport& Workspace::bubbles_of_trace() {
  const Window whole = store_->whole();
  return all_bubbles_.get(content(whole), [&] { return find_bubbles(*store_, whole); });
}

const CriticalPath& Workspace::critical_path() {
  return path_.get(content(), [this] { return find_critical_path(*store_, window()); });
}

const std::vector<Insight>& Workspace::insights() {
  return insights_.get(content(), [this] { return find_insights(*store_, window()); });
}

const MeshTable& Workspace::mesh() {
  return mesh_.get(content(store_->whole()), [this] { return mesh_table(*store_); });
}

const RunEnd& Workspace::run_end() {
  if (live != nullptr) return live_end_;
  return run_end_.get(loaded_, [this] { return run_end_beside(*store_); });
}

bool Workspace::has_live_run() const { return live != nullptr && live->status() != LiveStatus::kEnded; }

const char* Workspace::why_empty() const {
  return live != nullptr ? "The run has recorded nothing yet." : "No trace is open: ./ranklab viz last";
}

std::string_view Workspace::why_phases_only() {
  return phases_only_.get(content(store_->whole()), [this] { return viz::why_phases_only(*store_); });
}

bool Workspace::has_whole_step() const {
  if (store_->empty()) return false;
  if (!has_live_run()) return true;
  const auto past_the_first = [this](const RankTrace& trace) {
    return !trace.events.empty() && trace.events.back().step > store_->steps().front().step;
  };
  return !store_->steps().empty() && std::all_of(store_->traces().begin(), store_->traces().end(), past_the_first);
}

const StageScript& Workspace::stage() {
  const int now = step();
  // The key does not contain the step's range, because in a live run it grows with every event.
  return stage_.get(content(Window{{}, now}),
                    [&] { return stage_script(*store_, store_->step_window(now).value_or(store_->whole())); });
}

const std::vector<Dependency>& Workspace::dependencies_of(EventRef event) {
  return dependencies_.get({content(store_->whole()), event}, [&] { return dependencies(*store_, event); });
}

bool Workspace::visible(size_t rank_index) {
  if (!filter.active()) return true;
  if (filter.only_rank >= 0 && store_->rank(rank_index).global_rank != filter.only_rank) return false;
  for (const auto& [axis, coordinate] : filter.coordinates) {
    if (mesh().coordinate(rank_index, axis) != coordinate) return false;
  }
  return true;
}

void Workspace::select(std::optional<EventRef> event) {
  cursor.event = event;
  if (event) set_time(store_->begin_ns(*event));
}

void Workspace::set_time(int64_t time_ns) {
  cursor.time_ns = std::clamp(time_ns, store_->range().begin_ns, store_->range().end_ns);
  played_ns_ = static_cast<double>(cursor.time_ns);
}

void Workspace::go_to_step(int step) {
  if (const auto window = store_->step_window(step)) set_time(window->range.begin_ns);
}

void Workspace::go_to_mark(bool layer, bool forward) {
  const StageScript& script = stage();
  const std::vector<StageMark>& marks = layer ? script.layers : script.microbatches;
  const int room = filter.only_rank < 0 ? -1 : script.room_of_rank(filter.only_rank);
  const int64_t time = forward ? next_mark(marks, cursor.time_ns, room) : previous_mark(marks, cursor.time_ns, room);
  cursor.event.reset();
  if (time != kNoTime) return set_time(time);
  // Past the last mark of the step, continues in the neighbouring step.
  if (script.window.step < 0) return;
  const auto other = store_->step_window(script.window.step + (forward ? 1 : -1));
  if (other) set_time(forward ? other->range.begin_ns : script.window.range.begin_ns - 1);
}

void Workspace::show_event(EventRef event) {
  select(event);
  const double begin = static_cast<double>(store_->begin_ns(event)), end = static_cast<double>(store_->end_ns(event));
  if (begin >= camera.begin_ns && end <= camera.end_ns && end - begin > camera.length_ns() / 400) return;
  const double length = std::min(camera.length_ns(), std::max(end - begin, 1.0) * 40);
  camera.begin_ns = (begin + end - length) / 2;
  camera.end_ns = camera.begin_ns + length;
}

bool Workspace::poll_live() {
  if (live == nullptr) return false;
  const LiveStatus status = live->status();
  const std::vector<RankTrace> more = live->take();
  // If a run was killed, it is not known what its ranks did last.
  store_->set_live(status != LiveStatus::kEnded || live->failed());
  const bool first = store_->empty() && !more.empty();
  // Every rank has a row from the beginning, even before its first event.
  for (int rank = static_cast<int>(store_->ranks().size()); rank < live->world_size(); ++rank) {
    RankTrace absent;
    absent.global_rank = rank;
    store_->append(absent);
  }
  const TimeRange before = store_->range();
  for (const RankTrace& rank : more) store_->append(rank);
  if (first) {
    camera.show(store_->range(), 0.01);
    set_time(store_->range().begin_ns);
  } else if (playback.state != PlayState::kFollowing) {
    keep_end_in_view(before);
  }
  const double age = std::chrono::duration<double>(std::chrono::steady_clock::now() - tables_from_).count();
  if (age > kTablesAfter + kTablesAfterEvent * static_cast<double>(store_->num_events())) refresh_tables();
  // Only if nothing is left to read, so that the view follows the run to its very end.
  if (status == LiveStatus::kEnded && more.empty() && !live_ended_) end_live();
  return !more.empty();
}

void Workspace::end_live() {
  live_ended_ = true;
  refresh_tables();
  if (live->failed()) live_end_ = failed_run(live->message());
  log(live->failed() ? LogLine::Level::kError : LogLine::Level::kInfo,
      "the run has ended" + (live->message().empty() ? "" : ": " + live->message()));
  if (store_->dropped() > 0) {
    log(LogLine::Level::kWarning, strprintf("%lld events of its first steps were gone before they could be read",
                                            static_cast<long long>(store_->dropped())));
  }
  if (playback.state == PlayState::kFollowing && !store_->empty()) follow();
  playback.state = PlayState::kPaused;
}

// Shows the current step and the one before it.
void Workspace::follow() {
  const TimeRange whole = store_->range();
  const auto before = store_->step_window(store_->step_at(whole.end_ns) - 1);
  camera.show({before ? before->range.begin_ns : whole.begin_ns, whole.end_ns}, 0.02);
  set_time(whole.end_ns);
}

// Called when the trace has grown: an end that was visible stays visible, and a view of the whole trace still shows all
// of it.
void Workspace::keep_end_in_view(TimeRange before) {
  const TimeRange now = store_->range();
  const auto old_end = static_cast<double>(before.end_ns), new_end = static_cast<double>(now.end_ns);
  if (new_end <= camera.end_ns || camera.end_ns < old_end) return;
  const bool whole = camera.begin_ns <= static_cast<double>(before.begin_ns);
  if (whole) return camera.show(now, 0.01);
  const double shift = new_end - old_end;
  camera.begin_ns += shift;
  camera.end_ns += shift;
}

void Workspace::refresh_tables() {
  table_revision_ = store_->revision();
  tables_range_ = store_->range();
  tables_from_ = std::chrono::steady_clock::now();
}

bool Workspace::advance(double seconds) {
  const TimeRange whole = store_->range();
  if (playback.state == PlayState::kFollowing) {
    follow();
    return false;
  }
  if (playback.state != PlayState::kPlaying || whole.empty()) return false;
  const bool loop_area = playback.loop == LoopMode::kSelection && area.has_value();
  const TimeRange part = loop_area ? area->range : whole;
  const auto steps = static_cast<double>(std::max<size_t>(store_->steps().size(), 1));
  played_ns_ += seconds * playback.speed * static_cast<double>(whole.length_ns()) / steps / 10;
  if (played_ns_ >= static_cast<double>(part.end_ns) || played_ns_ < static_cast<double>(part.begin_ns)) {
    const bool over = played_ns_ >= static_cast<double>(part.end_ns);
    if (over && playback.loop == LoopMode::kOff) playback.state = PlayState::kPaused;
    played_ns_ = static_cast<double>(over && playback.loop == LoopMode::kOff ? part.end_ns : part.begin_ns);
  }
  cursor = {std::llround(played_ns_), {}};
  if (played_ns_ > camera.end_ns || played_ns_ < camera.begin_ns) {
    const double length = camera.length_ns();
    camera.begin_ns = played_ns_ - 0.05 * length;
    camera.end_ns = camera.begin_ns + length;
  }
  return playback.state == PlayState::kPlaying;
}

void Workspace::log(LogLine::Level level, std::string text, int global_rank, int64_t time_ns) {
  log_.push_back({level, std::move(text), global_rank, time_ns});
  if (log_.size() > kLogLines) log_.pop_front();
}

}  // namespace ranklab::viz
