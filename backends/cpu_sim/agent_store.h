// Under `torchrun --no-python` the agent owns MASTER_PORT: it serves c10d's key-value store there. Rank 0 publishes
// through it where its coordinator listens and a fresh token; the others read that. Only this: the store knows no
// authentication and names nobody who is missing. Thread rule: one thread.
#pragma once
#include <chrono>
#include <string>

#include "core/comm/process_env.h"

namespace ranklab::cpu_sim {

struct MeetingPoint {
  std::string address;  // numeric
  int port = 0;
  std::string token;
};

// On rank 0 publishes `mine`, elsewhere ignores it and returns rank 0's. Throws kEnvironment when the store cannot be
// reached, kTimeout when rank 0 does not publish.
MeetingPoint meet_through_agent(const ProcessEnv& env, const MeetingPoint& mine, std::chrono::milliseconds timeout);

}  // namespace ranklab::cpu_sim
