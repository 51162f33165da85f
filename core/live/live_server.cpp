#include "core/live/live_server.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/live/live_message.h"
#include "core/live/live_socket.h"

namespace ranklab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kServerTickMs = 20;
constexpr std::chrono::seconds kIntroduction{5};
constexpr std::chrono::milliseconds kFarewell{500};
constexpr size_t kUnsentBytes = 256 << 10;
constexpr size_t kEventsAtOnce = 256;
constexpr size_t kMostBreakpoints = 256;

}  // namespace

// The connection to one viewer.
class LiveViewer {
 public:
  LiveViewer(LiveSocket socket, const std::shared_ptr<LiveFeed>& feed)
      : socket_(std::move(socket)), feed_(feed), reader_(feed), names_sent_(static_cast<size_t>(feed->world_size())) {}

  int fd() const { return socket_.fd(); }
  bool attached() const { return attached_; }
  bool has_unsent() const { return sent_ < out_.size(); }
  bool is_done() const { return said_end_ && !has_unsent(); }
  bool has_stepped() const { return stepped_; }  // whether it gave the stepper a command
  bool is_late() const { return !attached_ && Clock::now() - since_ > kIntroduction; }

  // RETURNS: false when the viewer is gone. Throws kCommunication on a protocol violation.
  bool receive(Stepper* stepper) {
    std::string bytes;
    if (!socket_.receive(bytes)) return false;
    frames_.feed(bytes);
    while (const auto frame = frames_.next()) take(*frame, stepper);
    return true;
  }

  // Appends new data, as long as the viewer keeps up.
  void fill(const Stepper* stepper) {
    if (!attached_ || said_end_) return;
    // Read first, so that events recorded before the end are sent before the end is.
    const bool ended = feed_->ended();
    bool any = true;
    while (any && unsent() < kUnsentBytes) {
      any = false;
      for (int rank = 0; rank < feed_->world_size() && unsent() < kUnsentBytes; ++rank) any = add_events(rank) || any;
    }
    if (unsent() >= kUnsentBytes) return;
    add_state(stepper);
    if (!ended || any) return;
    out_ += ended_frame(feed_->error());
    said_end_ = true;
  }

  bool send() {
    if (!has_unsent()) return true;
    const long count = socket_.send(std::string_view(out_).substr(sent_));
    if (count < 0) return false;
    sent_ += static_cast<size_t>(count);
    if (sent_ == out_.size()) {
      out_.clear();
      sent_ = 0;
    }
    return true;
  }

 private:
  size_t unsent() const { return out_.size() - sent_; }

  void take(const RawFrame& frame, Stepper* stepper) {
    const auto type = static_cast<LiveType>(frame.type);
    if (type == LiveType::kAttach && !attached_) {
      check_attach(frame.payload);
      attached_ = true;
      out_ += welcome_frame({.world_size = feed_->world_size(), .steppable = stepper != nullptr});
      return;
    }
    if (type != LiveType::kCommand || !attached_)
      throw Error(ErrorKind::kCommunication, {.where = "live attach",
                                              .what = "a viewer sent another frame",
                                              .fix = "use the same version of ranklab on both sides"});
    const LiveCommand command = unpack_command(frame.payload);
    if (stepper == nullptr) return;
    stepped_ = true;
    const bool adds = command.kind == LiveCommand::Kind::kAddBreakpoint;
    if (!adds || stepper->state().breakpoints.size() < kMostBreakpoints) apply(command, *stepper);
  }

  bool add_events(int rank) {
    RankTrace batch;
    if (!reader_.read(rank, batch, kEventsAtOnce)) return false;
    size_t& names = names_sent_[static_cast<size_t>(rank)];
    out_ += events_frame(batch, names);
    names = batch.names.size();
    return true;
  }

  void add_state(const Stepper* stepper) {
    if (stepper == nullptr) return;
    const StepperState state = stepper->state();
    if (state.version == version_) return;
    version_ = state.version;
    out_ += state_frame(state);
  }

  LiveSocket socket_;
  std::shared_ptr<LiveFeed> feed_;
  LiveReader reader_;
  RawFrameReader frames_{kLiveMagic, static_cast<uint32_t>(LiveType::kCount), kLiveCommandCap};
  std::vector<size_t> names_sent_;
  std::string out_;
  size_t sent_ = 0;
  uint64_t version_ = 0;
  bool attached_ = false;
  bool stepped_ = false;
  bool said_end_ = false;
  Clock::time_point since_ = Clock::now();
};

class LiveServer::Loop {
 public:
  Loop(std::string path, std::shared_ptr<LiveFeed> feed, std::shared_ptr<Stepper> stepper, bool lets_go)
      : path_(std::move(path)),
        feed_(std::move(feed)),
        stepper_(std::move(stepper)),
        lets_go_(lets_go),
        listener_(listen_at(path_)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Loop() {
    stopping_ = true;
    thread_.join();
    ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  int num_viewers() const { return num_viewers_; }
  int num_refused() const { return num_refused_; }

 private:
  void run() {
    Clock::time_point deadline = Clock::time_point::max();
    while (Clock::now() < deadline) {
      if (stopping_ && deadline == Clock::time_point::max()) deadline = Clock::now() + kFarewell;
      wait();
      if (!stopping_) accept_all();
      for (auto each = viewers_.begin(); each != viewers_.end();) {
        const bool stays = serve(*each);
        stepped_ = stepped_ || each->has_stepped();
        each = stays ? std::next(each) : viewers_.erase(each);
      }
      num_viewers_ = static_cast<int>(
          std::count_if(viewers_.begin(), viewers_.end(), [](const LiveViewer& each) { return each.attached(); }));
      let_go_of_the_left();
      if (stopping_ && viewers_.empty()) return;
    }
  }

  // A waiting viewer would make the listener ready all the time if there is no place for it, so the listener is polled
  // only while there is a place.
  void wait() {
    std::vector<pollfd> ready;
    if (has_place()) ready.push_back({listener_.fd(), POLLIN, 0});
    for (const LiveViewer& each : viewers_)
      ready.push_back({each.fd(), static_cast<short>(POLLIN | (each.has_unsent() ? POLLOUT : 0)), 0});
    ::poll(ready.data(), ready.size(), kServerTickMs);
  }

  bool has_place() const { return static_cast<int>(viewers_.size()) < kMostViewers; }

  void accept_all() {
    while (has_place()) {
      LiveSocket socket = accept_viewer(listener_);
      if (!socket.is_open()) return;
      viewers_.emplace_back(std::move(socket), feed_);
    }
  }

  bool serve(LiveViewer& viewer) {
    try {
      if (!viewer.receive(stepper_.get()) || viewer.is_late()) return false;
      viewer.fill(stepper_.get());
      return viewer.send() && !viewer.is_done();
    } catch (const Error&) {
      ++num_refused_;
      return false;
    }
  }

  // If viewers stepped the run and nobody can step it any more, it continues without stopping.
  void let_go_of_the_left() {
    if (!lets_go_ || stepper_ == nullptr) return;
    if (!stepped_ || num_viewers_ > 0) return;
    const StepperState state = stepper_->state();
    for (const Breakpoint& each : state.breakpoints) stepper_->remove_breakpoint(each.id);
    if (state.mode == StepperMode::kPaused) stepper_->resume();
  }

  std::string path_;
  std::shared_ptr<LiveFeed> feed_;
  std::shared_ptr<Stepper> stepper_;
  bool lets_go_ = false;
  bool stepped_ = false;  // whether some viewer, who may be gone, stepped the run
  LiveSocket listener_;
  std::list<LiveViewer> viewers_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> num_viewers_{0};
  std::atomic<int> num_refused_{0};
  std::thread thread_;
};

LiveServer::LiveServer(std::string path, std::shared_ptr<LiveFeed> feed, std::shared_ptr<Stepper> stepper, bool lets_go)
    : loop_(std::make_unique<Loop>(std::move(path), std::move(feed), std::move(stepper), lets_go)) {}
LiveServer::~LiveServer() = default;
const std::string& LiveServer::path() const { return loop_->path(); }
int LiveServer::num_viewers() const { return loop_->num_viewers(); }
int LiveServer::num_refused() const { return loop_->num_refused(); }

}  // namespace ranklab
