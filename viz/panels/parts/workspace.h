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
  int64_t time_ns = kNoTime;  // in the trace: a position to jump to
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

  void load(TraceStore store);  // shows a step of it
  void load_other(TraceStore store);
  void close_other() { other_.reset(); }
  // What parity has found; null: no such file is open.
  const std::shared_ptr<const ParityMap>& parity() const { return parity_; }
  void close_parity() { parity_.reset(); }
  void load_parity(ParityMap map, const std::string& source);
  // Both throw ranklab::Error; on error the old trace stays.
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
  bool goes_on() const;                // a live run that has not ended
  const char* why_empty() const;       // what panels say while there is no event
  std::string_view why_phases_only();  // bubbles.h's, once for what the trace holds now
  // Whether it can be told what each step is made of: in a live run once every rank is past the first step.
  bool has_whole_step() const;
  const StageScript& stage();  // of the cursor's step; of a trace without steps the whole
  const std::vector<Dependency>& dependencies_of(EventRef event);  // the last one asked for is kept
  bool visible(size_t rank_index);                                 // according to the filter

  void select(std::optional<EventRef> event);  // moves the cursor to its begin
  void set_time(int64_t time_ns);
  void go_to_step(int step);  // its begin; does nothing if the trace has no such step
  // To the next moment (or the one before) when a microbatch's action, or a layer, begins: on the rank that is shown
  // alone, else on any. Beyond the step's it goes to the neighbouring step.
  void go_to_mark(bool layer, bool forward);
  void show_event(EventRef event);  // selects and brings it into view
  int step() const { return store_->step_at(cursor.time_ns); }

  // Reads what a live run has recorded since the last call. True when there was something.
  bool poll_live();
  // Tables follow a live trace at intervals (they cost O(events)); this updates them now.
  void refresh_tables();
  // Moves the cursor during playback, and the camera when following. True when another frame is due immediately.
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
  bool show_modules = true;   // rows for modules and kernels, where there is room for them
  bool show_insights = true;  // what costs most, above the panels
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
  uint64_t loaded_ = 1;  // which trace or live run it is that is shown; panels begin with 0, none
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
  double played_ns_ = 0;  // the cursor's time, with the fraction lost in short frames
  std::deque<LogLine> log_;
};

}  // namespace ranklab::viz
