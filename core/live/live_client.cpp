#include "core/live/live_client.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/live/live_message.h"
#include "core/live/live_socket.h"

namespace ranklab {
namespace {

constexpr int kClientTickMs = 20;
constexpr size_t kUnread = 200'000;        // events waiting for take(); beyond that, the run keeps or drops them
constexpr size_t kUntakenBytes = 1 << 20;  // commands that a stuck run has not read
constexpr std::chrono::milliseconds kAnswer{500};

// Everything that the window's thread and the connection's thread share.
struct Shared {
  mutable std::mutex mutex;
  LiveStatus status = LiveStatus::kConnecting;
  std::string message;
  LiveWelcome welcome;
  StepperState state;
  std::vector<RankTrace> ranks;  // what is known about each rank, without events
  // for take(): one batch per frame, because events of a rank may be lost between two frames
  std::vector<RankTrace> batches;
  size_t unread = 0;     // events in `batches`
  std::string commands;  // frames to send

  void end(const std::string& why) {
    const std::lock_guard lock(mutex);
    if (status == LiveStatus::kEnded) return;
    status = LiveStatus::kEnded;
    message = why;
    state.mode = StepperMode::kEnded;
    ++state.version;
  }
};

class RemoteStepper final : public StepperControl {
 public:
  explicit RemoteStepper(Shared& shared) : shared_(shared) {}

  StepperState state() const override {
    const std::lock_guard lock(shared_.mutex);
    return shared_.state;
  }
  void pause() override { send({.kind = LiveCommand::Kind::kPause}); }
  void resume() override { send({.kind = LiveCommand::Kind::kResume}); }
  void step_events(int64_t count) override { send({.kind = LiveCommand::Kind::kStepEvents, .count = count}); }
  void step_rank(int global_rank, int64_t count) override {
    send({.kind = LiveCommand::Kind::kStepRank, .count = count, .global_rank = global_rank});
  }
  void step_microbatch() override { send({.kind = LiveCommand::Kind::kStepMicrobatch}); }
  void step_training(int64_t count) override { send({.kind = LiveCommand::Kind::kStepTraining, .count = count}); }
  void add_breakpoint(const Breakpoint& breakpoint) override {
    send({.kind = LiveCommand::Kind::kAddBreakpoint, .breakpoint = breakpoint});
  }
  void remove_breakpoint(int id) override { send({.kind = LiveCommand::Kind::kRemoveBreakpoint, .count = id}); }

 private:
  void send(const LiveCommand& command) {
    const std::lock_guard lock(shared_.mutex);
    if (shared_.commands.size() < kUntakenBytes) shared_.commands += command_frame(command);
  }
  Shared& shared_;
};

class RemoteSource final : public LiveSource {
 public:
  explicit RemoteSource(const std::string& path) : socket_(connect_to(path)), stepper_(shared_) {
    shared_.commands = attach_frame();
    thread_ = std::thread([this] { run(); });
    const auto deadline = std::chrono::steady_clock::now() + kAnswer;
    while (!answered() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ~RemoteSource() override {
    stopping_ = true;
    thread_.join();
  }

  LiveStatus status() const override {
    const std::lock_guard lock(shared_.mutex);
    const bool paused = shared_.status == LiveStatus::kFollowing && shared_.state.mode == StepperMode::kPaused;
    return paused ? LiveStatus::kPaused : shared_.status;
  }
  std::string message() const override {
    const std::lock_guard lock(shared_.mutex);
    return shared_.message;
  }
  int world_size() const override {
    const std::lock_guard lock(shared_.mutex);
    return shared_.welcome.world_size;
  }
  std::vector<RankTrace> take() override {
    const std::lock_guard lock(shared_.mutex);
    shared_.unread = 0;
    return std::exchange(shared_.batches, {});
  }
  StepperControl* stepper() override {
    const std::lock_guard lock(shared_.mutex);
    return shared_.welcome.steppable ? &stepper_ : nullptr;
  }

 private:
  // Whether what the run had recorded, and its state, have arrived.
  bool answered() const {
    const std::lock_guard lock(shared_.mutex);
    if (shared_.status == LiveStatus::kConnecting) return false;
    return shared_.status == LiveStatus::kEnded || !shared_.welcome.steppable || shared_.state.version > 0;
  }

  void run() {
    RawFrameReader frames(kLiveMagic, static_cast<uint32_t>(LiveType::kCount), kLiveFrameCap);
    std::string out;
    try {
      while (!stopping_ && exchange(frames, out)) continue;
    } catch (const std::exception& error) {
      return shared_.end(error.what());
    }
    shared_.end("the run is gone: its end of the connection closed");
  }

  // RETURNS: false when the run is gone.
  bool exchange(RawFrameReader& frames, std::string& out) {
    bool reads = true;
    {
      const std::lock_guard lock(shared_.mutex);
      out += std::exchange(shared_.commands, {});
      reads = shared_.unread < kUnread;
    }
    pollfd ready{socket_.fd(), static_cast<short>((reads ? POLLIN : 0) | (out.empty() ? 0 : POLLOUT)), 0};
    ::poll(&ready, 1, kClientTickMs);
    if (!out.empty()) {
      const long count = socket_.send(out);
      if (count > 0) out.erase(0, static_cast<size_t>(count));
      // A run that sent its end and closed may have left data to read, so a failed send is no error.
    }
    if (!reads) return true;
    std::string bytes;
    const bool open = socket_.receive(bytes);
    frames.feed(bytes);
    while (const auto frame = frames.next()) take(*frame);
    return open;
  }

  void take(const RawFrame& frame) {
    if (static_cast<LiveType>(frame.type) == LiveType::kEnded) {
      const std::string error = unpack_ended(frame.payload);
      return shared_.end(error.empty() ? std::string(kRunIsDone) : error);
    }
    const std::lock_guard lock(shared_.mutex);
    if (static_cast<LiveType>(frame.type) == LiveType::kWelcome && shared_.status == LiveStatus::kConnecting) {
      shared_.welcome = unpack_welcome(frame.payload);
      shared_.ranks.resize(static_cast<size_t>(shared_.welcome.world_size));
      shared_.status = LiveStatus::kFollowing;
      return;
    }
    if (static_cast<LiveType>(frame.type) == LiveType::kState && shared_.welcome.world_size > 0) {
      shared_.state = unpack_state(frame.payload, shared_.welcome.world_size);
    } else if (static_cast<LiveType>(frame.type) == LiveType::kEvents && shared_.welcome.world_size > 0) {
      RankTrace& rank = shared_.ranks[static_cast<size_t>(unpack_events(frame.payload, shared_.ranks))];
      shared_.batches.push_back(rank);
      rank.events.clear();
      rank.arrays.clear();
      shared_.unread += kLiveEventsPerFrame / 4;  // the most events in a frame that this program sends
    } else {
      throw Error(ErrorKind::kCommunication, {.where = "live attach",
                                              .what = "the run sent a frame out of turn",
                                              .fix = "use the same version of ranklab on both sides"});
    }
  }

  LiveSocket socket_;
  Shared shared_;
  RemoteStepper stepper_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

std::string live_address(const std::string& text) {
  const std::string path = text.starts_with("unix:") ? text.substr(5) : text;
  if (path.empty()) return "runs/last/viz.sock";
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path + "/viz.sock" : path;
}

std::unique_ptr<LiveSource> attach(const std::string& text) {
  return std::make_unique<RemoteSource>(live_address(text));
}

}  // namespace ranklab
