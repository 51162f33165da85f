// State shared by the window's parts: the open trace and a second one to compare with, the view (view_state.h), tables
// that several panels show, messages, and requests to the window. Panels read and change it; they do not know each
// other. Thread rule: the window's thread.
#pragma once
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/live/live_source.h"
#include "viz/model/critical_path.h"
#include "viz/model/insights/insight.h"
#include "viz/model/parity/parity_map.h"
#include "viz/model/run/run_end.h"
#include "viz/model/stage/script.h"
#include "viz/model/store/trace_store.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/mesh_table.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/dependencies.h"
#include "viz/panels/parts/view_state.h"

namespace ranklab::viz {

struct LogLine {
  enum class Level : uint8_t { kInfo, kWarning, kError };
  Level level = Level::kInfo;
  std::string text;
  int global_rank = -1;
  int64_t time_ns = kNoTime;  // time in the trace to jump to
};

// Requests of a panel or a command to the window, handled after this frame.
struct Requests {
  std::string open_trace;    // a file, replacing the trace
  std::string compare_with;  // a file, as the second trace
  std::string show_panel;    // a panel's id
  std::string layout;        // a preset's name
  std::string picture;       // path of a PNG of the whole window
  bool open_palette = false;
  bool open_find = false;
  bool open_keys = false;
  bool toggle_metrics = false;
  bool open_file_dialog = false;
  bool quit = false;
};

// Identifies the content of a store for caches: which file, and its revision.
struct ContentKey {
  uint64_t loaded = 0;
  uint64_t revision = 0;
  Window window;
  bool operator==(const ContentKey&) const = default;
};

class Workspace {
 public:
  Workspace();
  ~Workspace();

  TraceStore& store() { return *store_; }
  const TraceStore& store() const { return *store_; }
  const TraceStore* other() const { return other_.get(); }

  void load(TraceStore store);  // also moves the view to a step of it
  void load_other(TraceStore store);
  void close_other() { other_.reset(); }
  // The result of parity; null if no such file is open.
  const std::shared_ptr<const ParityMap>& parity() const { return parity_; }
  void close_parity() { parity_.reset(); }
  void load_parity(ParityMap map, const std::string& source);
  // Both throw ranklab::Error; after an error the previous trace stays open.
  void open(const std::string& path);
  void go_to(const std::string& deep_link);
  std::string deep_link() const;

  // The part of the trace that tables cover.
  Window window() const;
  ContentKey content() const;  // of window()
  ContentKey content(const Window& window) const;
  uint64_t loaded() const { return loaded_; }

  const BubbleReport& bubbles();           // of window()
  const BubbleReport& bubbles_of_trace();  // of everything
  const CriticalPath& critical_path();     // of window()
  const std::vector<Insight>& insights();  // of window()
  const MeshTable& mesh();
  const RunEnd& run_end();
  bool has_live_run() const;           // whether there is a live run that has not ended
  const char* why_empty() const;       // what panels show while there is no event
  std::string_view why_phases_only();  // that of bubbles.h, computed once per content of the trace
  // Whether the parts of each step are known: in a live run as soon as every rank has passed the first step.
  bool has_whole_step() const;
  const StageScript& stage();  // of the cursor's step; of the whole trace if it has no steps
  const std::vector<Dependency>& dependencies_of(EventRef event);  // caches the result for the last event
  bool visible(size_t rank_index);                                 // according to the filter

  void select(std::optional<EventRef> event);  // moves the cursor to its begin
  void set_time(int64_t time_ns);
  void go_to_step(int step);  // its begin; does nothing if the trace has no such step
  // Moves to the next (or previous) moment at which a microbatch's action, or a layer, begins: on the rank that is
  // shown alone, else on any rank. After the last one of the step it moves to the neighbouring step.
  void go_to_mark(bool layer, bool forward);
  void show_event(EventRef event);  // selects and brings it into view
  int step() const { return store_->step_at(cursor.time_ns); }

  // Reads what a live run has recorded since the last call. RETURNS: whether there was anything.
  bool poll_live();
  // Tables follow a live trace at intervals, because they cost O(events); this updates them now.
  void refresh_tables();
  // Moves the cursor during playback, and the camera when following. RETURNS: true if another frame is due immediately.
  bool advance(double seconds);

  void log(LogLine::Level level, std::string text, int global_rank = -1, int64_t time_ns = kNoTime);
  const std::deque<LogLine>& log_lines() const { return log_; }

  Cursor cursor;
  std::optional<Area> area;
  std::optional<int64_t> mark_ns;  // where a measurement began
  Camera camera;
  Playback playback;
  RankFilter filter;
  Scope scope = Scope::kTrace;
  bool show_arrows = true;
  bool show_critical_path = true;
  bool show_modules = true;   // rows for modules and kernels, if there is space for them
  bool show_insights = true;  // what costs the most time, above the panels
  bool show_bubbles = true;
  float display_scale = 1;
  bool light_theme = false;
  Requests requests;
  std::shared_ptr<LiveSource> live;  // null: the trace is a file

 private:
  void keep_end_in_view(TimeRange before);
  void end_live();
  void follow();

  std::unique_ptr<TraceStore> store_, other_;
  std::shared_ptr<const ParityMap> parity_;
  uint64_t loaded_ = 1;  // number of the trace or live run that is shown; panels begin with 0, which stands for none
  Cached<ContentKey, BubbleReport> bubbles_, all_bubbles_;
  Cached<ContentKey, CriticalPath> path_;
  Cached<ContentKey, std::vector<Insight>> insights_;
  Cached<ContentKey, MeshTable> mesh_;
  Cached<ContentKey, std::string_view> phases_only_;
  Cached<ContentKey, StageScript> stage_;
  Cached<uint64_t, RunEnd> run_end_;
  Cached<std::pair<ContentKey, EventRef>, std::vector<Dependency>> dependencies_;
  bool live_ended_ = false;
  RunEnd live_end_;
  uint64_t table_revision_ = 0;
  TimeRange tables_range_;  // the trace's range when tables were updated
  std::chrono::steady_clock::time_point tables_from_;
  double played_ns_ = 0;  // the cursor's time, including the fraction that short frames would lose
  std::deque<LogLine> log_;
};

}  // namespace ranklab::viz
