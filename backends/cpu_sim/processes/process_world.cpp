#include "backends/cpu_sim/processes/process_world.h"

#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

#include "backends/cpu_sim/backend_row.h"
#include "backends/cpu_sim/processes/control.h"
#include "backends/cpu_sim/processes/coordinator.h"
#include "backends/cpu_sim/processes/process_run.h"
#include "backends/cpu_sim/transport/agent_store.h"
#include "backends/cpu_sim/transport/data_connect.h"
#include "backends/cpu_sim/transport/handshake.h"
#include "backends/cpu_sim/transport/own_user_socket.h"
#include "backends/cpu_sim/transport/peer_links.h"
#include "core/base/error.h"
#include "core/base/thread_stack.h"

namespace ranklab {
namespace cpu_sim {
namespace {

using std::chrono::milliseconds;

int64_t attempt_of(const ProcessEnv& env) { return env.restart.empty() ? 0 : std::atoll(env.restart.c_str()); }

CoordinatorOptions coordinator_options(const ProcessWorldOptions& options, const std::string& token) {
  return {.world_size = options.env.world_size,
          .token = token,
          .run_id = options.env.run_id,
          .attempt = attempt_of(options.env),
          .join_timeout = options.join_timeout,
          .hang_timeout = options.hang_timeout,
          .silence_limit = options.silence_limit,
          .same_call_site = options.same_call_site};
}

// A flag that one thread sets and another waits for.
class Done {
 public:
  void raise() {
    const std::lock_guard lock(mutex_);
    raised_ = true;
    changed_.notify_all();
  }
  bool wait_for(milliseconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return raised_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool raised_ = false;
};

class ProcessWorld final : public World {
 public:
  explicit ProcessWorld(ProcessWorldOptions options) : options_(std::move(options)) {}

  int size() const override { return options_.env.world_size; }
  int local_ranks() const override { return 1; }
  bool has_rank_zero() const override { return options_.env.rank == 0; }
  bool error_is_shown_elsewhere() const override { return shown_elsewhere_; }
  Capabilities capabilities() const override { return kOfProcesses; }

  std::string describe() const override {
    const std::string processes = std::to_string(size()) + (size() == 1 ? " rank process" : " rank processes");
    const bool alone = options_.env.one_host() || (control_ && is_loopback(control_->local_address()));
    if (plane_.links ? all_unix_ : alone && options_.unix_sockets) return processes + ", Gloo over unix sockets";
    return processes + (alone ? ", Gloo over TCP" : " on several hosts, Gloo over TCP");
  }

  void run(const std::function<void(Endpoint&)>& body) override {
    if (!plane_.mesh) join();
    const auto run = std::make_shared<ProcessRun>(*control_, plane_, options_.env.rank, runs_++);
    Done done;
    std::thread rank([&] {
      run_rank_body(run, options_.env.rank, size(), [&](Endpoint& endpoint) { body(endpoint); });
      run->wait_end();
      run->join_comm_threads();  // one may wait inside Gloo for a rank that is gone
      done.raise();
    });
    watch_over(done, rank.native_handle());
    rank.join();
    if (const auto failure = control_->failure()) {
      shown_elsewhere_ = failure->known_to_rank_zero;
      throw failure->first;
    }
  }

  void leave_behind(const std::string& bytes) noexcept override {
    constexpr size_t kPart = 1 << 20;
    try {
      for (size_t at = 0; at == 0 || at < bytes.size(); at += kPart) {
        const bool last = at + kPart >= bytes.size();
        control_->send_all(FrameType::kLeft,
                           Packer().number(last ? 1 : 0).text(std::string_view(bytes).substr(at, kPart)).bytes(),
                           options_.grace);
      }
    } catch (const std::exception&) {  // only the rank's own error is reported
    }
  }
  std::vector<std::string> left_behind() override {
    constexpr milliseconds kLeftWithin{100};  // launchers kill processes that do not exit soon after the first one has
    return coordinator_ ? coordinator_->left_behind(kLeftWithin) : std::vector<std::string>();
  }

 private:
  void join() {
    const MeetingPoint meeting = open_meeting();
    control_ = std::make_unique<Control>(JoinOptions{.address = meeting.address,
                                                     .port = meeting.port,
                                                     .token = meeting.token,
                                                     .run_id = options_.env.run_id,
                                                     .attempt = attempt_of(options_.env),
                                                     .rank = options_.env.rank,
                                                     .world_size = options_.env.world_size,
                                                     .join_timeout = options_.join_timeout,
                                                     .silence_limit = options_.silence_limit});
    try {
      control_->wait_for_start();
    } catch (const Error&) {
      if (const auto failure = control_->failure()) shown_elsewhere_ = failure->known_to_rank_zero;
      throw;
    }
    plane_.timeout = options_.hang_timeout.count() > 0 ? options_.hang_timeout : milliseconds(600'000);
    PeerSockets sockets = connect_data();
    all_unix_ = sockets.all_unix;
    plane_.links = std::make_shared<PeerLinks>(std::move(sockets.by_rank));
    plane_.mesh = std::make_shared<GlooGroup>(size(), plane_.timeout, [this] { return connect_mesh(); });
  }

  MeetingPoint open_meeting() {
    const ProcessEnv& env = options_.env;
    const std::string master = resolve_host(env.master_addr);
    MeetingPoint meeting{master, env.master_port, options_.token};
    if (env.agent_store) {
      meeting.address = route_source(master);
      meeting.port = 0;
      if (meeting.token.empty()) meeting.token = new_token();
    }
    RANKLAB_CHECK(is_loopback(meeting.address) || !meeting.token.empty(), ErrorKind::kInvalidArgument,
                  .where = "rendezvous", .what = "a rendezvous beyond this host needs a token",
                  .got = "MASTER_ADDR " + env.master_addr + " and no token",
                  .want = "one secret that every rank knows, so that strangers cannot join",
                  .fix =
                      "export RANKLAB_RUN_TOKEN=$(openssl rand -hex 32) on one host and the same on the others, or "
                      "pass --rdzv-token-file to ranklab launch");
    if (env.rank == 0) {
      std::vector<Socket> listeners;
      listeners.push_back(options_.listener_fd >= 0 ? Socket(options_.listener_fd)
                                                    : listen_on(meeting.address, meeting.port));
      meeting.port = port_of(listeners[0]);
      if (meeting.token.empty()) listeners.push_back(listen_for_own_user(meeting.address, meeting.port));
      coordinator_ = std::make_unique<Coordinator>(std::move(listeners), coordinator_options(options_, meeting.token));
    }
    return env.agent_store ? meet_through_agent(env, meeting, options_.join_timeout) : meeting;
  }

  PeerSockets connect_data() {
    const milliseconds limit = options_.join_timeout;
    try {
      return connect_peers({.rank = options_.env.rank,
                            .world_size = size(),
                            .token = options_.token,
                            .run_id = options_.env.run_id,
                            .attempt = attempt_of(options_.env),
                            .address = control_->local_address(),
                            .unix_sockets = options_.unix_sockets,
                            .timeout = limit,
                            .given_up = [this] { return control_->failure().has_value(); }},
                           {.set = [this](const auto& key, const auto& value) { control_->set(key, value); },
                            .get = [this, limit](const auto& key) { return control_->get(key, limit); }});
    } catch (const Error&) {
      if (const auto failure = control_->wait_failure(options_.silence_limit)) {
        shown_elsewhere_ = failure->known_to_rank_zero;
        throw failure->first;
      }
      throw;
    }
  }

  GlooContexts connect_mesh() {
    std::vector<int> everyone(static_cast<size_t>(size()));
    std::iota(everyone.begin(), everyone.end(), 0);
    const int rank = options_.env.rank;
    GlooContexts contexts(everyone.size());
    contexts[static_cast<size_t>(rank)] = plane_.links->context("mesh", everyone, rank, plane_.timeout);
    return contexts;
  }

  void watch_over(Done& done, pthread_t rank) {
    using Clock = std::chrono::steady_clock;
    std::optional<Clock::time_point> failed_at;
    while (!done.wait_for(milliseconds(50))) {
      const auto failure = control_->failure();
      if (!failure) continue;
      if (!failed_at) failed_at = Clock::now();
      if (Clock::now() - *failed_at < options_.grace) continue;
      if (options_.on_stuck) options_.on_stuck(failure->first);
      // Only this process can say where its own rank is.
      report_where_thread_is("rank " + std::to_string(options_.env.rank), rank);
      leave(failure->first, failure->known_to_rank_zero);
    }
  }

  ProcessWorldOptions options_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<Control> control_;
  DataPlane plane_;
  int runs_ = 0;
  bool all_unix_ = true;
  bool shown_elsewhere_ = false;
};

}  // namespace
}  // namespace cpu_sim

std::unique_ptr<World> make_process_world(ProcessWorldOptions options) {
  complete_master(options.env);
  if (options.hang_timeout.count() == 0) options.silence_limit = std::chrono::milliseconds(0);
  return std::make_unique<cpu_sim::ProcessWorld>(std::move(options));
}

}  // namespace ranklab
