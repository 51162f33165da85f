// A viewer's access to a running run, in this process or behind a socket: its events as they arrive, its state, and its
// stepper. Create one with attach_in_process() or attach(address) (live_client.h). Thread rule: one thread (the
// window's).
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/live/live_feed.h"
#include "core/live/stepper.h"
#include "core/trace/event.h"

namespace ranklab {

enum class LiveStatus : uint8_t {
  kConnecting,  // no answer yet
  kFollowing,   // the run is running
  kPaused,      // the stepper has paused it
  kEnded,       // the run is over, or the connection broke: message() says which
};
constexpr std::string_view name(LiveStatus status) {
  constexpr std::array<std::string_view, 4> kNames = {"connecting", "following", "paused", "ended"};
  return kNames[static_cast<size_t>(status)];
}

constexpr std::string_view kRunIsDone = "the run is done";  // message() of a run that ended well

class LiveSource {
 public:
  virtual ~LiveSource() = default;
  // Whether it ended with an error, or the connection broke.
  bool failed() const { return status() == LiveStatus::kEnded && message() != kRunIsDone; }
  virtual LiveStatus status() const = 0;
  virtual std::string message() const = 0;  // one line for the user; may be empty
  virtual int world_size() const = 0;       // 0 while connecting
  // What arrived since the last call, in batches of one rank each; never waits. Pass them to TraceStore::append(). Each
  // batch contains all names and groups of its rank so far. `dropped` counts all events so far that this viewer missed
  // because it connected too late or was too slow; events by which it increased were recorded just before the batch.
  // Empty: nothing new.
  virtual std::vector<RankTrace> take() = 0;
  // The run's stepper; valid as long as this. Null when the run cannot be stepped.
  virtual StepperControl* stepper() = 0;
};

// For `train --viz`: the run is in other threads of this process. `stepper` may be null.
std::unique_ptr<LiveSource> attach_in_process(std::shared_ptr<LiveFeed> feed, std::shared_ptr<Stepper> stepper);

}  // namespace ranklab
