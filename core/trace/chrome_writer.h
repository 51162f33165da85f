// Writes Chrome Trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open unchanged: one process per rank
// ("rank 3 (dp1 tp1)"), lanes phase / compute / one per axis, slices named as recorded (Perfetto colours by name),
// arrows between the ends of messages, counters for memory by category and loss. `ts` is the drawn clock in
// microseconds with the nanoseconds as decimals; the other clock and the bytes are in `args`. The file contains
// everything in a RankTrace, and read_chrome_trace() restores it. Reference: the Trace Event Format document (Google,
// 2016). Cost: the trace is streamed; besides the events of a piece, 4 bytes per event for lanes and the list of
// messages are needed. A path ending in .gz is compressed. The file appears whole or not at all. Thread rule: one
// thread.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "core/trace/event.h"
#include "core/trace/lanes.h"

namespace ranklab {

constexpr int kTraceSchemaVersion = 1;

struct ChromeWriterOptions {
  TraceClock clock = TraceClock::kVirtual;
  int world_size = 0;      // 0: the number of traces
  int gpus_per_node = 0;   // 0: unknown
  std::string title = {};  // model and layout, for people
};

// A trace that is written incrementally. Memory: that of one piece, however many came before.
class ChromeTraceWriter {
 public:
  // Creates the file under its temporary name. Throws kIo.
  explicit ChromeTraceWriter(const std::string& path, const ChromeWriterOptions& options = {});
  ~ChromeTraceWriter();  // without commit() no file remains

  // Adds what the ranks recorded since the last piece. `names` must hold all names so far, and the first piece must
  // contain every rank. Throws kIo.
  void add(std::span<const RankTrace> piece);
  // A process that is killed after this call leaves a file that is readable up to this piece. Throws kIo.
  void flush();
  void commit();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Writes a whole trace at once.
void write_chrome_trace(const std::string& path, std::span<const RankTrace> traces,
                        const ChromeWriterOptions& options = {});

}  // namespace ranklab
