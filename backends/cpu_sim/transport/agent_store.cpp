#include "backends/cpu_sim/transport/agent_store.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "backends/cpu_sim/transport/frame.h"
#include "core/base/error.h"
#include "core/sim/torch_error.h"

namespace ranklab::cpu_sim {
namespace {

constexpr const char* kKey = "coordinator";

c10::intrusive_ptr<c10d::Store> open_store(const ProcessEnv& env, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(env.master_port);
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    return c10::make_intrusive<c10d::PrefixStore>("ranklab/" + env.run_id + "/" + env.restart,
                                                  c10::make_intrusive<c10d::TCPStore>(env.master_addr, options));
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kEnvironment, {.where = "rendezvous, rank " + std::to_string(env.rank),
                                          .what = "cannot reach the store of torchrun's agent",
                                          .got = message_of(error),
                                          .want = env.master_addr + ":" + std::to_string(env.master_port),
                                          .fix = "see what torchrun wrote"});
  }
}

}  // namespace

MeetingPoint meet_through_agent(const ProcessEnv& env, const MeetingPoint& mine, std::chrono::milliseconds timeout) {
  const auto store = open_store(env, timeout);
  if (env.rank == 0) {
    const std::string value = Packer().text(mine.address).number(mine.port).text(mine.token).bytes();
    store->set(kKey, std::vector<uint8_t>(value.begin(), value.end()));
    return mine;
  }
  try {
    store->wait({kKey}, timeout);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::kTimeout, {.where = "rendezvous, rank " + std::to_string(env.rank),
                                      .what = "rank 0 did not arrive in time",
                                      .got = "nothing from it in the store of torchrun's agent",
                                      .want = "where its coordinator listens",
                                      .fix = "see what rank 0 wrote"});
  }
  const std::vector<uint8_t> value = store->get(kKey);
  Unpacker in({reinterpret_cast<const char*>(value.data()), value.size()});
  MeetingPoint out;
  out.address = in.text();
  out.port = in.number_between(1, 65535);
  out.token = in.text();
  return out;
}

}  // namespace ranklab::cpu_sim
