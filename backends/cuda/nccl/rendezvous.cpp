#include "backends/cuda/nccl/rendezvous.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "core/base/error.h"
#include "core/sim/torch_error.h"

namespace ranklab {
namespace {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr const char* kFailureKey = "failure";
constexpr std::chrono::milliseconds kPollInterval{2};
constexpr int kFailureCheckEvery = 50;  // number of polls
// Longer than the other ranks' polling period (heartbeat.h).
constexpr std::chrono::milliseconds kLinger{1'200};

// At the end, rank 0 waits this many times its usual limit for the other ranks to finish.
constexpr int kPatience = 10;

// One connection of this process. Never destroyed: if a server stopped and started again at the same port, ranks would
// still be connected to its predecessor; and so its thread need not be joined at the end of the process.
struct Connection {
  StorePtr store;
  int generations = 0;
};

Connection& connection_of(const ProcessEnv& env, std::chrono::milliseconds timeout) {
  static std::mutex mutex;
  static auto& connections = *new std::map<std::tuple<std::string, int, int>, Connection>();
  const std::tuple key(env.master_addr, env.master_port, env.rank);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = connections.find(key); found != connections.end()) return found->second;
  }
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = env.rank == 0 && !env.agent_store;
  options.waitWorkers = false;
  options.timeout = timeout;
  StorePtr store = c10::make_intrusive<c10d::TCPStore>(env.master_addr, options);
  const std::lock_guard lock(mutex);
  return connections[key] = {std::move(store), 0};
}

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

struct Rendezvous::Store {
  Connection* connection = nullptr;
  StorePtr prefixed;
};

Rendezvous::Rendezvous(const ProcessEnv& env, std::chrono::milliseconds connect, std::chrono::milliseconds wait)
    : env_(env), wait_(wait), store_(std::make_unique<Store>()) {
  if (env_.world_size == 1) return;
  try {
    store_->connection = &connection_of(env_, connect);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kEnvironment, {.where = "cuda rendezvous, rank " + std::to_string(env_.rank),
                                          .what = "cannot reach the store of the world",
                                          .got = message_of(error),
                                          .want = store_place(),
                                          .fix = "check MASTER_ADDR and MASTER_PORT, and that rank 0 runs"});
  }
  next_generation();
}

Rendezvous::~Rendezvous() = default;

std::string Rendezvous::store_place() const {
  return (env_.agent_store ? "the launcher's agent at " : "rank 0 at ") + env_.master_addr + ":" +
         std::to_string(env_.master_port);
}

void Rendezvous::next_generation() {
  if (store_->connection == nullptr) return;
  const std::string prefix = "ranklab/" + env_.restart + "/" + std::to_string(store_->connection->generations++);
  store_->prefixed = c10::make_intrusive<c10d::PrefixStore>(prefix, store_->connection->store);
}

void Rendezvous::set(const std::string& key, const std::string& value) { store_->prefixed->set(key, bytes_of(value)); }

std::string Rendezvous::get(const std::string& key, int from_global_rank) {
  return get_within(key, from_global_rank, wait_);
}

std::string Rendezvous::get_within(const std::string& key, int from_global_rank, std::chrono::milliseconds limit) {
  const auto begin = std::chrono::steady_clock::now();
  for (int poll = 1; !store_->prefixed->check({key}); ++poll) {
    if (poll % kFailureCheckEvery == 0) check_failure();
    RANKLAB_CHECK(limit.count() == 0 || std::chrono::steady_clock::now() - begin < limit, ErrorKind::kTimeout,
                  .where = "cuda rendezvous, rank " + std::to_string(env_.rank),
                  .what = "rank " + std::to_string(from_global_rank) + " did not arrive",
                  .got = "nothing for " + std::to_string(limit.count()) + " ms", .want = "its entry " + key,
                  .fix = "see that rank's log; every rank must ask for the same groups in the same order");
    std::this_thread::sleep_for(kPollInterval);
  }
  return text_of(store_->prefixed->get(key));
}

std::optional<std::string> Rendezvous::look(const std::string& key) {
  if (!store_->prefixed->check({key})) return std::nullopt;
  return text_of(store_->prefixed->get(key));
}

std::optional<std::vector<std::optional<std::string>>> Rendezvous::look_all(const std::vector<std::string>& keys,
                                                                            std::chrono::milliseconds limit) {
  using Values = std::vector<std::optional<std::string>>;
  // The store waits for its answer without a time limit that we could set. A thread that waits too long is therefore
  // abandoned, together with what it holds.
  auto promise = std::make_shared<std::promise<Values>>();
  std::future<Values> answer = promise->get_future();
  std::thread([promise, keys, store = store_->prefixed] {
    try {
      Values values;
      for (const std::string& key : keys)
        values.push_back(store->check({key}) ? std::optional(text_of(store->get(key))) : std::nullopt);
      promise->set_value(std::move(values));
    } catch (const std::exception&) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  if (answer.wait_for(limit) != std::future_status::ready) return std::nullopt;
  try {
    return answer.get();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void Rendezvous::remove(const std::string& key) { store_->prefixed->deleteKey(key); }

void Rendezvous::report_failure(const std::string& what) noexcept {
  if (!store_->prefixed) return;
  try {
    // Only the first failure is kept, since it is the one to show.
    store_->prefixed->compareSet(kFailureKey, {}, bytes_of("rank " + std::to_string(env_.rank) + ": " + what));
  } catch (const std::exception&) {
    // The store is gone; the others will notice that themselves.
  }
}

void Rendezvous::check_failure() {
  if (!store_->prefixed) return;
  const std::optional<std::string> text = look(kFailureKey);
  if (!text) return;
  throw Error(ErrorKind::kCommunication,
              {.where = where(), .what = "another rank failed", .got = *text, .fix = "see that rank's log"});
}

bool Rendezvous::has_finished(int rank) { return store_->prefixed->check({finished_key(rank)}); }

void Rendezvous::finish() {
  if (!store_->prefixed) return;
  set(finished_key(env_.rank), "1");
  if (env_.rank != 0) return;
  // A rank may still be writing its files; the heartbeat detects dead ranks.
  for (int rank = 0; rank < env_.world_size; ++rank) get_within(finished_key(rank), rank, kPatience * wait_);
}

void Rendezvous::linger() noexcept {
  if (store_->prefixed && env_.rank == 0 && !env_.agent_store) std::this_thread::sleep_for(kLinger);
}

}  // namespace ranklab
