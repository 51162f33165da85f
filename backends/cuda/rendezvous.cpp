#include "backends/cuda/rendezvous.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <thread>

#include "core/base/error.h"

namespace ranklab {
namespace {

constexpr const char* kFailureKey = "failure";
constexpr std::chrono::milliseconds kPollInterval{2};
constexpr int kFailureCheckEvery = 50;  // polls

}  // namespace

struct Rendezvous::Store {
  c10::intrusive_ptr<c10d::Store> store;
};

Rendezvous::Rendezvous(const ProcessEnv& env, std::chrono::milliseconds timeout)
    : env_(env), timeout_(timeout), store_(std::make_unique<Store>()) {
  if (env_.world_size == 1) return;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env_.master_port);
  options.isServer = env_.rank == 0 && !env_.agent_store;
  options.waitWorkers = false;
  options.timeout = timeout_;
  try {
    auto tcp = c10::make_intrusive<c10d::TCPStore>(env_.master_addr, options);
    store_->store = c10::make_intrusive<c10d::PrefixStore>("ranklab/" + env_.restart, std::move(tcp));
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kEnvironment,
                {.where = "cuda rendezvous, rank " + std::to_string(env_.rank),
                 .what = "cannot reach the store of the world",
                 .got = error.what(),
                 .want = "rank 0 at " + env_.master_addr + ":" + std::to_string(env_.master_port),
                 .fix = "check MASTER_ADDR and MASTER_PORT, and that rank 0 runs"});
  }
}

Rendezvous::~Rendezvous() = default;

void Rendezvous::set(const std::string& key, const std::string& value) {
  store_->store->set(key, std::vector<uint8_t>(value.begin(), value.end()));
}

std::string Rendezvous::get(const std::string& key, int from_global_rank) {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  for (int poll = 1; !store_->store->check({key}); ++poll) {
    if (poll % kFailureCheckEvery == 0) check_failure();
    RANKLAB_CHECK(std::chrono::steady_clock::now() < deadline, ErrorKind::kTimeout,
                  .where = "cuda rendezvous, rank " + std::to_string(env_.rank),
                  .what = "rank " + std::to_string(from_global_rank) + " did not come",
                  .got = "nothing for " + std::to_string(timeout_.count()) + " ms", .want = "its entry " + key,
                  .fix = "see that rank's log; every rank must ask for the same groups in the same order");
    std::this_thread::sleep_for(kPollInterval);
  }
  const std::vector<uint8_t> value = store_->store->get(key);
  return {value.begin(), value.end()};
}

void Rendezvous::remove(const std::string& key) { store_->store->deleteKey(key); }

void Rendezvous::report_failure(const std::string& what) noexcept {
  if (!store_->store) return;
  try {
    const std::string text = "rank " + std::to_string(env_.rank) + ": " + what;
    // The first failure is the one to show.
    store_->store->compareSet(kFailureKey, {}, std::vector<uint8_t>(text.begin(), text.end()));
  } catch (const std::exception&) {
    // The store is gone; the others will see that themselves.
  }
}

void Rendezvous::check_failure() {
  if (!store_->store || !store_->store->check({kFailureKey})) return;
  const std::vector<uint8_t> text = store_->store->get(kFailureKey);
  throw Error(ErrorKind::kCommunication, {.where = "cuda world, rank " + std::to_string(env_.rank),
                                          .what = "another rank failed",
                                          .got = std::string(text.begin(), text.end()),
                                          .fix = "see that rank's log"});
}

void Rendezvous::finish() {
  if (!store_->store) return;
  set("finished/" + std::to_string(env_.rank), "1");
  if (env_.rank != 0) return;
  for (int rank = 0; rank < env_.world_size; ++rank) get("finished/" + std::to_string(rank), rank);
}

}  // namespace ranklab
