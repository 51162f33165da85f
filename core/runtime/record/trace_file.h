// The trace of a run as a file that grows with it: what the ranks recorded in a step is written by a separate thread
// while they run the next one, so memory does not grow with the steps, and the end of a run waits for two steps at
// most. The file has a temporary name until the run ends. It also gets its final name when a rank fails, and then holds
// what was recorded until then. A process that is killed leaves the temporary file, which is readable up to its last
// complete step. Cost: writing a step (about a microsecond per event); memory for two steps' events; ranks wait when
// the disk is slower than they are. Thread rule: hooks on rank 0's thread, keep() from any.
#pragma once
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "core/runtime/hooks.h"
#include "core/trace/chrome_writer.h"

namespace ranklab {

class TraceWriterHook : public Hook {
 public:
  // Writes the trace (find_trace.h) of all ranks into the folder, which no other run may use; in virtual time for
  // simulated ranks, else in wall time. `title`: describes model and layout to whoever opens the trace. Throws kIo
  // naming the folder.
  TraceWriterHook(const std::string& directory, const RunPlan& plan, std::string title = {});
  ~TraceWriterHook() override;

  void on_traces(const TracePiece& piece) override;       // throws kIo
  void on_train_end(const TrainResult& result) override;  // throws kIo
  // Completes the file with what was handed over so far. Called before the process exits in the middle of a step.
  void keep() noexcept;

 private:
  void write_all();
  void write_pieces();

  std::string path_;
  ChromeWriterOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  TracePiece next_;
  bool ending_ = false, done_ = true;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace ranklab
