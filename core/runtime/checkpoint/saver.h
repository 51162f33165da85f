// Writes the checkpoints of one process's ranks in the background: ranks hand in snapshots, and one thread writes them.
// In the process of rank 0 that thread also waits for every rank's file, publishes the checkpoint and prunes older
// ones. An error is kept and thrown at a rank's next call. Only one checkpoint is in progress at a time: a rank that is
// due to hand in a snapshot for the next one waits. Cost: the snapshots' memory until they are written. Thread rule:
// any thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/checkpoint/checkpoint_writer.h"
#include "core/runtime/checkpoint/snapshot.h"
#include "core/runtime/hooks.h"

namespace ranklab {

struct SaverOptions {
  std::string run_folder = {};
  std::string token = {};  // identifies this run, equal in all its processes
  int world_size = 1;
  int local_ranks = 1;         // ranks that hand in snapshots here
  bool leads = true;           // whether this is the process of rank 0
  int64_t keep_last = 0;       // 0: all
  std::string tokenizer = {};  // the text of tokenizer.json in each checkpoint; "": none
  double part_limit_s = 120;   // how long to wait for other processes' parts
  FileCalls* calls = &system_file_calls();
};

// What rank 0 adds to its snapshot.
struct SaveHead {
  CheckpointManifest manifest = {};  // without files and tensors
  int64_t begin_ns = 0;              // beginning of the stall, which lasts until the rank trains again
  int64_t stalled_ns = 0;            // stall so far; includes the writing if ranks wait for it
  bool ranks_wait = false;
};

class CheckpointSaver {
 public:
  explicit CheckpointSaver(SaverOptions options);
  ~CheckpointSaver();  // writes the checkpoints that are complete
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Waits until no checkpoint of an earlier step is in progress. Like the next two functions, throws the error of a
  // failed save.
  void wait_for_earlier(int64_t step);
  void submit(int64_t step, RankSnapshot snapshot, std::optional<SaveHead> head);
  void wait_for(int64_t step);  // waits until it is written and, if this process leads, published
  void check();
  // Checkpoints that were published since the last call.
  std::vector<CheckpointNote> take_notes();

 private:
  struct Save {
    std::deque<RankSnapshot> waiting = {};
    std::map<int, CheckpointManifest> parts = {};  // manifests of the files already written, by rank
    std::optional<SaveHead> head = {};
    int64_t begin_ns = 0;  // when writing began
  };
  using Lock = std::unique_lock<std::mutex>;

  void run();
  bool work(Lock& lock);  // false when there is nothing to do
  void write_one(Lock& lock, int64_t step, Save& save);
  void finish(Lock& lock, int64_t step, Save& save);
  void collect_parts(const CheckpointWriter& writer, Save& save) const;
  void publish(CheckpointWriter& writer, Save& save);
  void fail(Lock& lock);
  void rethrow() const;
  bool complete(const Save& save) const;
  CheckpointWriter writer(int64_t step) const;

  SaverOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Save> saves_;  // in progress
  std::vector<CheckpointNote> notes_;
  std::exception_ptr error_;
  double closing_limit_s_ = 2;  // replaces part_limit_s while closing; set before closing begins
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace ranklab
