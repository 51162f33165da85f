// Writes the checkpoints of the ranks of one process behind their backs: ranks hand in snapshots, one thread writes
// them; in the process of rank 0 it waits until every rank's file is there, publishes the checkpoint and prunes older
// ones. What goes wrong is kept and thrown at the next call of a rank. One checkpoint is under way at a time: a rank
// whose snapshot of the next one is due waits. Cost: the snapshots' memory until they are written.
// Thread rule: any thread.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/checkpoint/checkpoint_writer.h"
#include "core/runtime/checkpoint_snapshot.h"
#include "core/runtime/hooks.h"

namespace ranklab {

struct SaverOptions {
  std::string run_folder = {};
  std::string token = {};  // of this run, equal in all its processes
  int world_size = 1;
  int local_ranks = 1;        // that hand in snapshots here
  bool leads = true;          // the process of rank 0
  int64_t keep_last = 0;      // 0: all
  double part_limit_s = 120;  // how long other processes' parts may take
  FileCalls* calls = &system_file_calls();
};

// What rank 0 adds to its snapshot.
struct SaveHead {
  CheckpointManifest manifest = {};  // without files and tensors
  int64_t begin_ns = 0;              // of the stall, which goes on until the rank trains again
  int64_t stalled_ns = 0;            // so far; the writing is added where ranks wait for it
  bool ranks_wait = false;
};

class CheckpointSaver {
 public:
  explicit CheckpointSaver(SaverOptions options);
  ~CheckpointSaver();  // what is complete is written
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Waits until no checkpoint of an earlier step is under way. Like the next two, throws what a save threw.
  void wait_for_earlier(int64_t step);
  void submit(int64_t step, RankSnapshot snapshot, std::optional<SaveHead> head);
  void wait_for(int64_t step);  // until it is written; published, where this process leads
  void check();
  // Checkpoints that were published since the last call.
  std::vector<CheckpointNote> take_notes();

 private:
  struct Save {
    std::deque<RankSnapshot> waiting = {};
    std::map<int, CheckpointManifest> parts = {};  // by rank, of files that are written
    std::optional<SaveHead> head = {};
    int64_t begin_ns = 0;  // of writing
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
  std::map<int64_t, Save> saves_;  // under way
  std::vector<CheckpointNote> notes_;
  std::exception_ptr error_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace ranklab
