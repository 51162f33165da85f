// The streams and events of a stand-in for CUDA's runtime: a stream is an in-order queue whose work runs on a thread of
// its own, now and then a little late, so that a missing event or a tensor freed too early shows on a machine without a
// GPU. A wait inside a stream holds that stream alone, as a kernel that spins does; there are as many hardware queues
// as streams. Nothing is destroyed: a stream may hold work for good, as a GPU does until its process ends. Cost: a
// thread for each stream that was ever used. Thread rule: any thread.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace ranklab::stand_in {

using StreamWork = std::function<void()>;
// What the streams of a capture were given, in the order of the thread that captures.
using CapturePtr = std::shared_ptr<std::vector<StreamWork>>;

class Stream {
 public:
  explicit Stream(int its_device) : device(its_device) {}
  void add(StreamWork work);
  // While it captures, what is added is kept and not run.
  bool begin_capture(CapturePtr capture);  // false: it captures already
  // RETURNS: whether another stream of the capture waits for the last of its work.
  bool end_capture();
  bool captures() const { return capture() != nullptr; }
  CapturePtr capture() const;
  int64_t captured_work() const;
  void note_waited_for(int64_t captured_work);
  bool idle() const;
  void synchronize() const;

  const int device;

 private:
  void run();

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<StreamWork> work_;
  CapturePtr capture_;
  int64_t captured_work_ = 0, waited_for_ = 0;
  int64_t added_ = 0, done_ = 0;
  bool started_ = false;
};

// When recorded again it represents its last record; a wait refers to the latest record before it.
class Event {
 public:
  void record(Stream& stream);
  void put_in_front_of(Stream& stream);
  bool reached() const;
  bool captured() const { return capture() != nullptr; }  // its last record is part of a capture
  CapturePtr capture() const;
  void synchronize() const;
  // When the last record was reached. REQUIRES: reached().
  std::chrono::steady_clock::time_point time() const;

 private:
  struct Record {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;
    CapturePtr capture = nullptr;
    Stream* stream = nullptr;
    int64_t captured_work = 0;
    std::chrono::steady_clock::time_point at;

    void wait();
  };
  std::shared_ptr<Record> last() const;

  mutable std::mutex mutex_;
  std::shared_ptr<Record> last_;  // null before the first; the queued work keeps its own, and may outlive the event
};

}  // namespace ranklab::stand_in
