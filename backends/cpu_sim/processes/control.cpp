#include "backends/cpu_sim/processes/control.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>

#include "backends/cpu_sim/processes/wire.h"
#include "backends/cpu_sim/transport/handshake.h"
#include "backends/cpu_sim/transport/own_user_socket.h"
#include "backends/cpu_sim/transport/rounds.h"
#include "core/base/text.h"

namespace ranklab::cpu_sim {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswerWithin{2'000};

}  // namespace

Control::Control(JoinOptions options)
    : options_(std::move(options)), deadline_(Clock::now() + options_.join_timeout), wake_(wake_event()) {
  milliseconds pause(10);
  while (!try_to_join()) {
    RANKLAB_CHECK(Clock::now() < deadline_, ErrorKind::kTimeout, .where = "rendezvous, " + rank_name(options_.rank),
                  .what = "rank 0 did not arrive in time",
                  .got = "nobody who knows the run at " + options_.address + ":" + std::to_string(options_.port) +
                         " for " + human_ns(static_cast<double>(options_.join_timeout.count()) * 1e6),
                  .want = "rank 0's process", .fix = "see what rank 0 wrote; check MASTER_ADDR and MASTER_PORT");
    std::this_thread::sleep_for(std::min(pause, time_left(deadline_)));
    pause = std::min(pause * 2, milliseconds(200));
  }
  last_heard_ = last_round_ = Clock::now();
  thread_ = std::thread([this] { loop(); });
}

Control::~Control() {
  listen({});
  send(FrameType::kBye);
  stopping_ = true;
  wake(wake_);
  thread_.join();
}

std::optional<Frame> Control::next_frame(Clock::time_point until) {
  for (;;) {
    if (std::optional<Frame> frame = in_.next()) return frame;
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(time_left(until).count())) <= 0) return std::nullopt;
    std::string bytes;
    if (receive_some(socket_, bytes) == 0) return std::nullopt;
    in_.feed(bytes);
  }
}

// RETURNS: false if joining should be tried again.
bool Control::try_to_join() {
  in_ = FrameReader(kFrameCap);
  out_.clear();
  broken_ = false;
  const milliseconds limit = std::min(time_left(deadline_), milliseconds(1000));
  std::optional<Socket> connected;
  if (options_.token.empty()) connected = connect_to_own_user(options_.address, options_.port, limit);
  // Without a token this connection is only used to hear why a rank 0 with a token refuses; a welcome is not believed.
  if (!connected) connected = connect_to(options_.address, options_.port, limit);
  if (!connected) return false;
  socket_ = std::move(*connected);
  const bool may_believe = !options_.token.empty() || is_of_own_user(socket_);
  local_address_ = options_.token.empty() ? options_.address : ranklab::cpu_sim::local_address(socket_);
  const std::optional<Frame> challenge = next_frame(std::min(deadline_, Clock::now() + kAnswerWithin));
  if (!challenge || challenge->type != FrameType::kChallenge) return false;
  Hello hello{.rank = options_.rank,
              .world_size = options_.world_size,
              .attempt = options_.attempt,
              .run_id = options_.run_id,
              .nonce = {},
              .proof = {}};
  const std::string nonce = Unpacker(challenge->payload).text();
  send(FrameType::kHello, answer_challenge(options_.token, nonce, hello));
  // A busy rank 0 may take its time. Leaving meanwhile would be the end of the run: it may have counted this rank as
  // joined.
  const std::optional<Frame> answer = next_frame(deadline_);
  if (!answer) return false;
  Unpacker in(answer->payload);
  if (answer->type == FrameType::kRefused) {
    const Error error = unpack_error(in);
    if (in.flag()) return false;
    throw error;
  }
  // A listener that does not know the token is not rank 0.
  return may_believe && answer->type == FrameType::kWelcome &&
         same_secret(in.text(), coordinator_proof(options_.token, nonce, hello.nonce));
}

// The coordinator names the missing ranks, so this end waits a little longer than the coordinator does.
void Control::wait_for_start() {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline_ + kAnswerWithin, [&] { return started_ || failure_ || goodbye_; });
  if (failure_) throw failure_->first;
  RANKLAB_CHECK(started_, ErrorKind::kTimeout, .where = "rendezvous, " + rank_name(options_.rank),
                .what = "rank 0 does not start the run", .got = "no word from it", .want = "all ranks to arrive",
                .fix = "see what rank 0 wrote");
}

void Control::listen(Handlers handlers) {
  const bool starts = handlers.on_frame != nullptr;
  {
    const std::lock_guard lock(handlers_mutex_);
    handlers_ = std::move(handlers);
  }
  if (starts && over_) lost_the_line();
}

std::optional<WorldFailure> Control::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<WorldFailure> Control::wait_failure(milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return failure_.has_value(); });
  return failure_;
}

void Control::fail(const WorldFailure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
  }
  changed_.notify_all();
  const std::lock_guard lock(handlers_mutex_);
  if (handlers_.on_failure) handlers_.on_failure();
}

void Control::send(FrameType type, const std::string& payload, bool deferred) {
  const std::lock_guard lock(send_mutex_);
  out_ += frame_bytes(type, payload);
  if (!deferred) flush();
}

void Control::send_all(FrameType type, const std::string& payload, milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  const std::lock_guard lock(send_mutex_);
  out_ += frame_bytes(type, payload);
  for (flush(); !out_.empty() && !broken_ && Clock::now() < end; flush()) {
    pollfd ready{socket_.get(), POLLOUT, 0};
    ::poll(&ready, 1, static_cast<int>(kTick.count()));
  }
}

void Control::flush() {
  size_t done = 0;
  while (done < out_.size() && !broken_) {
    const long sent = send_some(socket_, out_, done);
    if (sent < 0) broken_ = true;  // the listening thread sees the end of the line itself
    if (sent <= 0) break;
    done += static_cast<size_t>(sent);
  }
  out_.erase(0, done);
}

void Control::set(const std::string& key, const std::string& value) {
  send(FrameType::kSet, Packer().text(key).text(value).bytes());
}

std::string Control::get(const std::string& key, milliseconds limit) {
  send(FrameType::kGet, Packer().text(key).bytes());
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return failure_ || values_.contains(key); });
  if (failure_) throw failure_->first;
  const auto found = values_.find(key);
  RANKLAB_CHECK(found != values_.end(), ErrorKind::kTimeout, .where = rank_name(options_.rank) + ", store",
                .what = "no rank set the key in time", .got = "nothing for " + quote(key), .want = "its value",
                .fix = "see what the other ranks do");
  std::string value = std::move(found->second);
  values_.erase(found);
  return value;
}

void Control::loop() {
  pthread_setname_np(pthread_self(), "control");
  bool open = true;
  while (!stopping_ && open) {
    {
      pollfd waits[2] = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      ::poll(waits, 2, static_cast<int>(kTick.count()));
    }
    try {
      std::string bytes;
      const long got = receive_some(socket_, bytes);
      if (got > 0) {
        last_heard_ = Clock::now();
        in_.feed(bytes);
        read_all();
      }
      open = got != 0;
    } catch (const std::exception& error) {
      lost(ErrorKind::kCommunication, "the rank's process is not understood", error.what());
      open = false;
    }
    check_times();
  }
  over_ = true;
  if (!stopping_ && !may_end()) lost_the_line();
}

// Between runs, after a goodbye.
bool Control::may_end() {
  const std::scoped_lock lock(mutex_, handlers_mutex_);
  return goodbye_ && !handlers_.on_frame;
}

void Control::lost_the_line() {
  lost(ErrorKind::kCommunication, "the rank's process, which coordinates the others, is gone",
       "its connection ended (" + options_.address + ":" + std::to_string(options_.port) + ")");
}

void Control::read_all() {
  while (const std::optional<Frame> frame = in_.next()) handle(*frame);
}

void Control::handle(const Frame& frame) {
  Unpacker in(frame.payload);
  switch (frame.type) {
    case FrameType::kPoison: {
      const Error first = unpack_error(in);
      return fail({first, unpack_error(in), options_.rank != 0});
    }
    case FrameType::kValue: {
      const std::string key = in.text();
      const std::lock_guard lock(mutex_);
      values_[key] = in.text();
      break;
    }
    case FrameType::kStart:
    case FrameType::kBye: {
      const std::lock_guard lock(mutex_);
      (frame.type == FrameType::kStart ? started_ : goodbye_) = true;
      break;
    }
    case FrameType::kMatched:
    case FrameType::kEnded: {
      const std::lock_guard lock(handlers_mutex_);
      if (handlers_.on_frame) handlers_.on_frame(frame);
      return;
    }
    default:
      return;
  }
  changed_.notify_all();
}

void Control::check_times() {
  const Clock::time_point now = Clock::now();
  if (now - last_round_ > kLongRound) last_heard_ = now;
  last_round_ = now;
  if (now - last_beat_ >= kHeartbeat) {
    last_beat_ = now;
    send(FrameType::kAlive);
  }
  if (options_.silence_limit.count() == 0 || now - last_heard_ <= options_.silence_limit) return;
  lost(ErrorKind::kTimeout, "the rank's process, which coordinates the others, does not answer",
       strprintf("silence for %.1f s", std::chrono::duration<double>(now - last_heard_).count()));
}

void Control::lost(ErrorKind kind, const std::string& what, const std::string& got) {
  const Error error(kind, {.where = rank_name(0),
                           .what = what,
                           .got = got,
                           .want = "every rank's process stays until the run ends",
                           .fix = "see what rank 0 wrote last, and whether it is stopped or its host unreachable"});
  fail({error, error, false});
}

}  // namespace ranklab::cpu_sim
