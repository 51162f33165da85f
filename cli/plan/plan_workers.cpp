#include "cli/plan/plan_workers.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/system.h"

namespace ranklab {
namespace {

constexpr int64_t kPlanBytes = int64_t{3} << 29;  // that a plan of a large model may use
constexpr int kMostAtOnce = 16;

bool send_all(int socket, const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent, size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* bytes, size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got, size -= static_cast<size_t>(got);
  }
  return true;
}

bool send_text(int socket, const std::string& text) {
  const uint64_t size = text.size();
  return send_all(socket, &size, sizeof size) && send_all(socket, text.data(), text.size());
}

std::optional<std::string> receive_text(int socket) {
  uint64_t size = 0;
  if (!receive_all(socket, &size, sizeof size)) return std::nullopt;
  std::string text(size, '\0');
  return receive_all(socket, text.data(), size) ? std::optional(text) : std::nullopt;
}

// The numbers sent over a socket. Both sides are the same program, so they need no defined byte format.
struct ChoiceNumbers {
  int tp, pp, cp, ep, virtual_stages, zero_stage;
  GradSync grad_sync;
  int64_t micro_batch;
};
struct PlanNumbers {
  double step_s, mfu, bytes, pass_s;
};

bool send_choice(int socket, const LayoutChoice& c) {
  const ChoiceNumbers numbers = {c.tp, c.pp, c.cp, c.ep, c.virtual_stages, c.zero_stage, c.grad_sync, c.micro_batch};
  return send_all(socket, &numbers, sizeof numbers) && send_text(socket, c.recompute) && send_text(socket, c.schedule);
}

std::optional<LayoutChoice> receive_choice(int socket) {
  ChoiceNumbers n = {};
  if (!receive_all(socket, &n, sizeof n)) return std::nullopt;
  const auto recompute = receive_text(socket), schedule = receive_text(socket);
  if (!recompute || !schedule) return std::nullopt;
  return LayoutChoice{.tp = n.tp,
                      .pp = n.pp,
                      .cp = n.cp,
                      .ep = n.ep,
                      .virtual_stages = n.virtual_stages,
                      .zero_stage = n.zero_stage,
                      .micro_batch = n.micro_batch,
                      .recompute = *recompute,
                      .schedule = *schedule,
                      .grad_sync = n.grad_sync};
}

}  // namespace

int plans_at_once() {
  const int64_t room = available_memory_bytes() / kPlanBytes;
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  return static_cast<int>(std::clamp<int64_t>(std::min(cores, room), 1, kMostAtOnce));
}

PlanWorkers::PlanWorkers(int workers, std::function<PlannedLayout(const LayoutChoice&)> plan) : plan_(std::move(plan)) {
  for (int i = 0; i < workers && workers > 1; ++i) start_worker();
}

// If the system refuses to create a process, there is one worker less.
void PlanWorkers::start_worker() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    // Otherwise later workers would keep the sockets of earlier ones open.
    for (const Worker& other : workers_) ::close(other.socket);
    ::close(ends[0]);
    serve(ends[1]);
  }
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return;
  }
  workers_.push_back({.pid = pid, .socket = ends[0]});
}

void PlanWorkers::serve(int socket) const {
  try {
    while (const auto choice = receive_choice(socket)) {
      const PlannedLayout row = plan_(*choice);
      const PlanNumbers numbers = {row.step_s, row.mfu, row.bytes, row.pass_s};
      if (!send_all(socket, &numbers, sizeof numbers) || !send_text(socket, row.refused)) break;
    }
  } catch (...) {  // main() belongs to the parent process, which notices that this one ends
    ::_exit(1);
  }
  ::_exit(0);  // inherited buffers are flushed by the parent
}

PlanWorkers::~PlanWorkers() {
  for (const Worker& worker : workers_) {
    ::close(worker.socket);
    // The worker may be in the middle of a plan that nobody waits for any more.
    if (worker.choice >= 0) ::kill(worker.pid, SIGKILL);
    while (::waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

PlannedLayout PlanWorkers::answer_of(Worker& worker, const LayoutChoice& choice) const {
  PlanNumbers numbers = {};
  const bool got = receive_all(worker.socket, &numbers, sizeof numbers);
  const auto refused = got ? receive_text(worker.socket) : std::nullopt;
  RANKLAB_CHECK(refused.has_value(), ErrorKind::kInternal, .where = "plan search",
                .what = "a process that plans a layout ended", .got = choice.flags(), .want = "its plan",
                .fix = "free memory, or ranklab plan run " + choice.flags());
  worker.choice = -1;
  return {.choice = choice,
          .step_s = numbers.step_s,
          .mfu = numbers.mfu,
          .bytes = numbers.bytes,
          .pass_s = numbers.pass_s,
          .refused = *refused};
}

std::vector<PlannedLayout> PlanWorkers::plan(const std::vector<LayoutChoice>& choices,
                                             const std::function<void()>& planned) {
  std::vector<PlannedLayout> rows(choices.size());
  for (size_t i = 0; i < choices.size() && workers_.empty(); ++i) {
    rows[i] = plan_(choices[i]);
    planned();
  }
  if (workers_.empty()) return rows;
  size_t next = 0, done = 0;
  const auto give = [&](Worker& worker) {
    if (next == choices.size()) return;
    worker.choice = static_cast<int>(next);
    send_choice(worker.socket, choices[next++]);  // if the worker has ended, nothing can be read from it either
  };
  for (Worker& worker : workers_) give(worker);
  while (done < choices.size()) {
    std::vector<pollfd> sockets;
    for (const Worker& worker : workers_)
      sockets.push_back({.fd = worker.choice < 0 ? -1 : worker.socket, .events = POLLIN, .revents = 0});
    if (::poll(sockets.data(), sockets.size(), -1) < 0) continue;
    for (size_t i = 0; i < sockets.size(); ++i) {
      if (sockets[i].revents == 0) continue;
      const auto at = static_cast<size_t>(workers_[i].choice);
      rows[at] = answer_of(workers_[i], choices[at]);
      ++done;
      planned();
      give(workers_[i]);
    }
  }
  return rows;
}

}  // namespace ranklab
