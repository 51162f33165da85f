// Serves viewers of a run: listens on a unix socket, sends every viewer the run's events and the stepper's state as
// they change, and receives stepper commands. A viewer that is slow, gone, silent or hostile is dropped or loses
// events; the ranks are never affected, and when the last viewer is gone, ranks that viewers held continue. Cost: one
// thread that wakes 50 times a second; at most 256 KiB of unsent bytes per viewer. Thread rule: any thread.
#pragma once
#include <memory>
#include <string>

#include "core/live/live_feed.h"
#include "core/live/stepper.h"

namespace ranklab {

class LiveServer {
 public:
  static constexpr int kMostViewers = 16;

  // `stepper` may be null. lets_go: only viewers step the run. Throws kIo when it cannot listen at `path`.
  LiveServer(std::string path, std::shared_ptr<LiveFeed> feed, std::shared_ptr<Stepper> stepper, bool lets_go = true);
  // Gives viewers half a second to read the remaining data, then removes the socket.
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  const std::string& path() const;
  int num_viewers() const;
  int num_refused() const;  // viewers dropped because they sent invalid data

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace ranklab
