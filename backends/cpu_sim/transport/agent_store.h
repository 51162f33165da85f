// Under `torchrun --no-python` the agent owns MASTER_PORT and serves c10d's key-value store there. Through it rank 0
// publishes its coordinator's address and a fresh token; the other ranks read them. It is used for nothing else,
// because the store has no authentication and cannot name missing ranks. Thread rule: one thread.
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

// Rank 0 publishes `mine`; other ranks ignore it and return rank 0's. Throws kEnvironment when the store cannot be
// reached, kTimeout when rank 0 does not publish.
MeetingPoint meet_through_agent(const ProcessEnv& env, const MeetingPoint& mine, std::chrono::milliseconds timeout);

}  // namespace ranklab::cpu_sim
