// Mutual proof that two processes know the run's token without sending it: each signs the other's fresh random nonce
// (HMAC-SHA256, RFC 2104; OpenSSL's). A recorded answer is useless, since nonces never repeat. The connection to the
// coordinator and every data connection begin this way. Later traffic is neither signed nor encrypted: whoever can
// alter packets in transit (root on a host, a router) has to be trusted. Thread rule: pure.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/cpu_sim/transport/frame.h"

namespace ranklab::cpu_sim {

std::string new_nonce();                                   // 32 random bytes
std::string new_token();                                   // 64 hexadecimal digits
bool same_secret(std::string_view a, std::string_view b);  // compares in constant time

inline constexpr int64_t kProtocolVersion = 3;

struct Hello {
  int64_t version = kProtocolVersion;
  int rank = 0;
  int world_size = 1;
  int64_t attempt = 0;  // attempt number of a restarted job
  std::string run_id;
  int64_t pid = 0;
  std::string nonce;
  std::string proof;  // by prove()
};
void pack_hello(Packer& packer, const Hello& hello);
Hello unpack_hello(Unpacker& unpacker);

// Time limit for a peer to prove itself, and the number of unproven peers that are kept; beyond it the oldest is
// dropped.
inline constexpr std::chrono::milliseconds kProveWithin{2'000};
inline constexpr size_t kStrangers = 256;

// The member's proof covers everything that it says about itself; the coordinator's covers both nonces.
std::string member_proof(const std::string& token, const std::string& challenge, const Hello& hello);
// The payload that answers a challenge: `hello` with this process's id, a fresh nonce (both are set in it) and the
// proof.
std::string answer_challenge(const std::string& token, const std::string& challenge, Hello& hello);
std::string coordinator_proof(const std::string& token, const std::string& challenge, const std::string& nonce);

// The token for data connections that `listener` accepts in one attempt of one run: an answer to one rank's challenge
// is invalid for another's. `secret` is chosen by rank 0, fresh for each world, so that worlds without a token are
// protected too.
struct DataTokenOf {
  std::string token;
  std::string secret;
  std::string run_id;
  int64_t attempt = 0;
  int listener = 0;
};
std::string data_token(const DataTokenOf& of);

// 64 bits of SHA-256: a short identifier for a text that both ends know.
uint64_t short_digest(std::string_view text);

}  // namespace ranklab::cpu_sim
